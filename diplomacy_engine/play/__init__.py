"""People at the table: sessions, their page and their terminal."""
