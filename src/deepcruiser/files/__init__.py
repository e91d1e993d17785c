"""Files: ours are written completely or not at all, and foreign ones are checked before any library reads them."""
