"""Sub-agents: helpers with a context of their own that the model sends off with the tool `task`."""
