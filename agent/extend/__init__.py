"""What the person, and a folder they trust, add to refold: slash commands, skills and hooks."""
