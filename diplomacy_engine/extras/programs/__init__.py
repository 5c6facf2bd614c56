"""Programs that play by lines of text: docs/protocol.md, and the older protocol DUI."""
