"""Pictures of runs and labellings."""
