"""What a curve of writing tells: its rounds, its falls, write amplification and spare."""
