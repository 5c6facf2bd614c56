"""Players that look ahead: they try orders on copies of the board before they give them."""
