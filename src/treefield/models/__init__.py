"""The models that a user builds."""
