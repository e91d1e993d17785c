"""Where mutants are made and run."""
