"""How the questions of solvers about a model are answered."""
