"""What it can do: one typed async function a file, discovered by `tools.base.load_tools`. Imports nothing of ours."""
