"""What a session's folds cost and what they hid, told from its log."""
