"""A party as a process: frames, handshake, sockets, journal."""
