"""A door between a browser and a run: it hangs up when it is told, lets nobody in while it is shut, and may change what
the run says. Requests are made to look as if they came straight to the run, which refuses others.
"""
import socket
import threading


def hang_up(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:  # it has gone already
        pass


class Door:
    def __init__(self, target_port):
        self.target = ("127.0.0.1", target_port)
        self.change = (b"", b"")  # of what the run says: this, and what takes its place; as long
        self.pairs = []
        self.listener = None
        self.port = 0
        while len(str(self.port)) != len(str(target_port)):  # so that a request keeps its length
            self.shut()
            self.port = 0
            self.open()

    def open(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        self.listener.listen(64)
        threading.Thread(target=self.let_in, args=(self.listener,), daemon=True).start()

    def let_in(self, listener):
        own, theirs = (f"127.0.0.1:{port}".encode() for port in (self.port, self.target[1]))
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target)
            except OSError:
                client.close()
                continue
            self.pairs.append((client, server))
            threading.Thread(target=self.carry, args=(client, server, lambda data: data.replace(own, theirs)),
                             daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, lambda data: data.replace(*self.change)
                                                      if self.change[0] else data), daemon=True).start()

    @staticmethod
    def carry(source, target, changed):
        try:
            while data := source.recv(1 << 16):
                target.sendall(changed(data))
        except OSError:
            pass
        for end in (source, target):
            hang_up(end)
            end.close()

    def hang_up(self):
        """Ends all connections; new ones are let in."""
        pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for end in pair:
                hang_up(end)

    def shut(self):
        """Ends all connections and lets nobody in."""
        if self.listener:
            hang_up(self.listener)  # wakes who waits for a client
            self.listener.close()
        self.listener = None
        self.hang_up()
