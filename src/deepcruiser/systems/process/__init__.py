"""Programs that read and answer in lines of JSON."""
