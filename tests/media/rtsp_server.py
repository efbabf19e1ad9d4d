#!/usr/bin/env python3
"""An RTSP server on 127.0.0.1 for network.py and cameras.py: /film plays a file once, /camera has no end.

usage: rtsp_server.py FILM_MP4 PORT     (0: any; the port that it has is printed, and on the next line the codecs)

/CODEC_RATE, as in /h265_3, is a camera of so many pictures a second.

It ends with its standard input, so that it outlives nobody. Exit code 77: GStreamer's server is not installed.
"""
import sys
import threading

try:
    import gi
    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer
except (ImportError, ValueError) as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

CAMERA = ("videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width=96,height=64,framerate=25/1 ! jpegenc ! "
          "rtpjpegpay name=pay0 pt=26")
PAYERS = {"mjpeg": "jpegenc ! rtpjpegpay name=pay0 pt=26",
          "h264": "x264enc tune=zerolatency ! rtph264pay name=pay0 pt=96 config-interval=-1",
          "h265": "x265enc tune=zerolatency speed-preset=ultrafast ! rtph265pay name=pay0 pt=96 config-interval=-1"}
RATES = (1, 3, 60)


def cameras():
    """A path and a line for each codec that is there, and each rate."""
    for codec, line in PAYERS.items():
        if all(Gst.ElementFactory.find(part.split()[0]) for part in line.split(" ! ")):
            for rate in RATES:
                source = f"videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width=96,height=64,framerate={rate}/1"
                yield f"/{codec}_{rate}", f"{source} ! {line}"


def main():
    Gst.init(None)
    for element in ("qtdemux", "rtph264pay", "rtpjpegpay", "jpegenc", "videotestsrc"):
        if Gst.ElementFactory.find(element) is None:
            print(f"GStreamer has no {element}", file=sys.stderr)
            sys.exit(77)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(sys.argv[2])
    film = f'filesrc location="{sys.argv[1]}" ! qtdemux ! rtph264pay name=pay0 pt=96'
    for path, line in (("/film", film), ("/camera", CAMERA), *cameras()):
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch(f"( {line} )")
        server.get_mount_points().add_factory(path, factory)
    if server.attach(None) == 0:
        sys.exit("the port is taken")
    print(server.get_bound_port(), flush=True)
    print(*sorted({path[1:].split("_")[0] for path, _ in cameras()}), flush=True)
    loop = GLib.MainLoop()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.quit()), daemon=True).start()
    loop.run()


if __name__ == "__main__":
    main()
