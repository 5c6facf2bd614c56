"""Programs that play by lines of text, as in docs/protocol.md."""
