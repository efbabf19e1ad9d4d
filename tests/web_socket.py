"""A client of WebSockets for tests, which says what it is told to."""
import base64
import os
import socket
import struct

SECONDS_MAX = 60


class Closed(Exception):
    """The server has closed the WebSocket; args: the code (0: without one) and the reason."""


class WebSocket:
    def __init__(self, port, origin=None, host=None, path="/control", tls=None):
        """`tls`: an ssl.SSLContext for a server that is reached by https."""
        host = host or f"127.0.0.1:{port}"
        origin = f"{'https' if tls else 'http'}://{host}" if origin is None else origin
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="127.0.0.1")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n")
                            .encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass

    def close(self):
        self.file.close()
        self.socket.close()

    def say(self, text, opcode=1):
        data, mask = text if isinstance(text, bytes) else text.encode(), os.urandom(4)
        size = len(data)
        head = bytes([0x80 | opcode]) + (bytes([0x80 | size]) if size < 126 else
                                         struct.pack(">BH", 0xFE, size) if size < 65536 else
                                         struct.pack(">BQ", 0xFF, size))
        self.socket.sendall(head + mask + bytes(byte ^ mask[n % 4] for n, byte in enumerate(data)))

    def hear(self):
        """(opcode, bytes) of the next message; raises Closed."""
        head = self.file.read(2)
        if len(head) < 2:
            raise Closed(0, "")
        size = head[1] & 127
        if size > 125:
            size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
        data = self.file.read(size)
        if head[0] & 15 == 8:
            raise Closed(int.from_bytes(data[:2], "big"), data[2:].decode())
        return head[0] & 15, data
