"""Parts shared by all programs that serve a handler table: process setup, port, certificate."""
