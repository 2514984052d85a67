"""What is minimised."""
