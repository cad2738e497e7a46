"""What every program that serves a handler table needs: its process, its port, its certificate."""
