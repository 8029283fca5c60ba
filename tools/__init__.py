"""What developers of Rota run; none of it is installed with the package."""
