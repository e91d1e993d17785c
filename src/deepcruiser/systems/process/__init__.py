"""Any program, run beside us and asked by lines of JSON."""
