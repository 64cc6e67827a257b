"""What was said: the vocabulary of a conversation and its durable JSONL form. Imports nothing of ours."""
