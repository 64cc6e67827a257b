"""refold as a library: `from refold import Session, Settings`."""
