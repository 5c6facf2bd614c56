"""What only some users meet: other programs' files and servers, and language models."""
