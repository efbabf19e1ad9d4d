"""Small video files of all kinds, which ffmpeg makes once and which are kept while their recipes stay the same."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import threading

import rig
from rig import FFMPEG, call

SIZE = "64x48"
SOURCE = f"testsrc2=size={SIZE}:rate=25"


class File:
    """One file: how it is made, and what is special about it.

    `steps`: arguments of ffmpeg, or functions of the folder; the last writes the file. `needs`: encoders. `turned`: how
    many degrees counter-clockwise it asks to be turned by. `tags`: what a value must say. `threads`: 1 where what is
    damaged is only the same picture in the same order of work. `lost`: that pictures are, which the report must say.
    `mended`: times go back by more than a second or on by more than an hour, and go on with a period from there.
    """

    def __init__(self, name, *steps, needs=(), turned=0, tags=None, stream=None, lost=False, threads=0, mended=False):
        self.name, self.steps, self.needs, self.turned = name, steps, needs, turned
        self.tags, self.stream, self.lost, self.threads = tags or {}, stream, lost, threads
        self.mended = mended

    def stamp(self):
        names = [[getattr(part, "__name__", part) for part in step] for step in self.steps]
        return hashlib.sha256(json.dumps([rig.ffmpeg_version(), self.name, names]).encode()).hexdigest()


def coded(name, encoder, *options, source=SOURCE, count=30, needs=(), **more):
    """A file of `count` pictures of the test source in one step."""
    return File(name, ["-f", "lavfi", "-i", source, "-frames:v", count, "-c:v", encoder, *options, name],
                needs=(*needs, encoder), **more)


def copied(name, before, made, *options, **more):
    """A file that is made and then remultiplexed without encoding."""
    first = "first_" + name.rsplit(".", 1)[0] + before
    return File(name, ["-f", "lavfi", "-i", SOURCE, *made, first], [*options[0], "-i", first, "-c", "copy", *options[1:], name],
                **more)


X264 = ["-preset", "veryfast", "-pix_fmt", "yuv420p"]
B_FRAMES = ["-c:v", "libx264", *X264, "-bf", 3, "-g", 12, "-frames:v", 50]
H264 = {"needs": ("libx264",)}


# Steps that are no run of ffmpeg, written as (function, argument, …).
def cut_off(folder, source, target, share):
    """The first part of a file, as an interrupted download leaves it."""
    data = (folder / source).read_bytes()
    (folder / target).write_bytes(data[:int(len(data) * share)])


def damaged(folder, source, target, places, length):
    """The file with `length` bytes overwritten at some places, given as shares of the whole."""
    data = bytearray((folder / source).read_bytes())
    for place in places:
        begin = int(len(data) * place)
        data[begin:begin + length] = bytes((17 * i + 5) % 256 for i in range(length))
    (folder / target).write_bytes(data)


def joined(folder, target, *sources):
    """Files one after another, as transport streams may be."""
    (folder / target).write_bytes(b"".join((folder / source).read_bytes() for source in sources))


def written(folder, name, text):
    (folder / name).write_text(text)


def transport(name, offset, count=15):
    """A step: a transport stream whose times begin at `offset` seconds."""
    return ["-f", "lavfi", "-i", SOURCE, "-frames:v", count, "-c:v", "mpeg2video", "-g", 5, "-muxdelay", 0, "-muxpreload", 0,
            "-output_ts_offset", offset, name]


def tagged(space, transfer, primaries, value_range):
    wide = "limited" if value_range == "tv" else "full"
    matrix = rig.MATRICES[space]
    options = ["-vf", f"scale=out_color_matrix={'bt2020' if matrix == 'bt2020' else matrix}:out_range={value_range},format=yuv420p",
               "-colorspace", space, "-color_trc", transfer, "-color_primaries", primaries, "-color_range", value_range]
    return coded(f"{matrix}_{wide}.mp4", "libx264", *X264, *options,
                 tags={"color": rig.COLORS[matrix], "range": 1 if value_range == "tv" else 0,
                       "primaries": rig.PRIMARIES[primaries], "transfer": rig.TRANSFERS[transfer]})


def raw(name, pixels, source=SOURCE, **more):
    return coded(name, "rawvideo", "-pix_fmt", pixels, source=source, count=10, **more)


def lossless(name, encoder, pixels, source=SOURCE, count=10, **more):
    return coded(name, encoder, "-pix_fmt", pixels, source=source, count=count, **more)


SOUND = ["-f", "lavfi", "-i", "sine=frequency=440:duration=2"]


def rotated(degrees):
    return copied(f"rotated_{degrees}.mp4", ".mp4", ["-frames:v", 12, "-c:v", "libx264", *X264],
                  [], "-metadata:s:v:0", f"rotate={degrees}", turned=degrees, **H264)


WORDS = "1\n00:00:00,100 --> 00:00:00,900\nfirst\n\n2\n00:00:01,000 --> 00:00:01,500\nsecond\n"

FILES = [
    # Codecs and the containers that they are usual in.
    coded("h264_b_frames.mp4", *B_FRAMES[1:-2], count=50),
    coded("h264_b_frames.mkv", *B_FRAMES[1:-2], count=50),
    coded("h264_b_frames.ts", *B_FRAMES[1:-2], count=50),
    coded("h264_open_gop.mkv", "libx264", *X264, "-bf", 2, "-g", 8, "-x264-params", "open-gop=1:b-pyramid=normal"),
    coded("h264_interlaced.ts", "libx264", *X264, "-flags", "+ildct+ilme", "-x264-params", "tff=1"),
    coded("h264_fragmented.mp4", *B_FRAMES[1:-2], "-movflags", "+frag_keyframe+empty_moov+default_base_moof"),
    coded("h264.flv", "libx264", *X264),
    coded("h264.avi", "libx264", *X264, "-bf", 0),
    coded("h264_elementary.h264", "libx264", *X264, "-bf", 0),
    coded("hevc.mp4", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:bframes=3", "-pix_fmt", "yuv420p"),
    coded("hevc.mkv", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:keyint=10", "-pix_fmt", "yuv420p"),
    coded("vp8.webm", "libvpx", "-deadline", "realtime", "-cpu-used", 8, "-auto-alt-ref", 1, "-lag-in-frames", 8),
    coded("vp9.webm", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", 8),
    coded("vp9_alpha.webm", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", 8, "-pix_fmt", "yuva420p"),
    coded("av1_aom.webm", "libaom-av1", "-cpu-used", 8, "-usage", "realtime", count=12),
    coded("av1_svt.mp4", "libsvtav1", "-preset", 12, source="testsrc2=size=128x96:rate=25", count=12),
    coded("mpeg1.mpg", "mpeg1video", "-bf", 2),
    coded("mpeg2.ts", "mpeg2video", "-bf", 2),
    coded("mpeg2_422.ts", "mpeg2video", "-pix_fmt", "yuv422p"),
    coded("mpeg4.avi", "mpeg4", "-q:v", 4),
    coded("mpeg4_b.mp4", "mpeg4", "-bf", 2, "-q:v", 4),
    coded("mjpeg.avi", "mjpeg", "-q:v", 4, "-pix_fmt", "yuvj420p"),
    coded("mjpeg_422.mov", "mjpeg", "-q:v", 4, "-pix_fmt", "yuvj422p"),
    coded("ffv1.mkv", "ffv1"),
    coded("gif.gif", "gif", count=12),
    coded("prores.mov", "prores_ks", count=10),
    coded("prores_4444.mov", "prores_ks", "-pix_fmt", "yuva444p10le", count=10),
    coded("theora.mkv", "libtheora", "-q:v", 7),
    coded("dnxhd.mov", "dnxhd", "-profile:v", "dnxhr_sq", "-pix_fmt", "yuv422p", source="testsrc2=size=256x120:rate=25", count=10),
    # Pixel formats.
    coded("h264_10_bit.mkv", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p10le"),
    coded("h264_422.mkv", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv422p"),
    coded("h264_444.mp4", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv444p"),
    coded("h264_gray.mkv", "libx264", "-preset", "veryfast", "-pix_fmt", "gray"),
    coded("h264_full.mp4", "libx264", "-preset", "veryfast", "-pix_fmt", "yuvj420p", tags={"range": 0}),
    lossless("ffv1_422_10_bit.mkv", "ffv1", "yuv422p10le"),
    lossless("ffv1_gray16.mkv", "ffv1", "gray16le"),
    lossless("ffv1_bgr0.mkv", "ffv1", "bgr0"),
    lossless("ffv1_bgra.mkv", "ffv1", "bgra"),
    lossless("ffv1_rgb48.mkv", "ffv1", "rgb48le"),
    lossless("huffyuv.avi", "huffyuv", "yuv422p"),
    lossless("huffyuv_rgb.avi", "huffyuv", "rgb24"),
    lossless("huffyuv_bgra.avi", "huffyuv", "bgra"),
    lossless("png.mkv", "png", "rgb24"),
    lossless("png_rgba.mkv", "png", "rgba"),
    lossless("png_gray.mkv", "png", "gray"),
    lossless("png_palette.mkv", "png", "pal8", source="color=c=red:size=64x48:rate=25,format=pal8"),
    raw("raw_i420.nut", "yuv420p"),
    raw("raw_nv12.nut", "nv12"),
    raw("raw_bgr.nut", "bgr24"),
    raw("raw_bgr.avi", "bgr24"),
    raw("raw_rgba.nut", "rgba"),
    raw("raw_gray.nut", "gray"),
    File("yuv4mpeg.y4m", ["-f", "lavfi", "-i", SOURCE, "-frames:v", 10, "-pix_fmt", "yuv420p", "yuv4mpeg.y4m"]),
    # Times.
    coded("variable_rate.mkv", "libx264", *X264, "-bf", 2, "-vf", "settb=1/1000,setpts='(N+mod(N*N,7)/5)/25/TB'", "-vsync",
          "passthrough", "-enc_time_base", "1:1000"),
    coded("equal_times.mkv", "ffv1", "-vf", "setpts='floor(N/2)*2/25/TB'", "-vsync", "passthrough"),
    coded("variable_rate.mp4", "libx264", *X264, "-vf", "select='lt(mod(n,7),3)'", "-vsync", "passthrough"),
    coded("variable_rate.webm", "libvpx", "-deadline", "realtime", "-cpu-used", 8, "-vf", "select='not(mod(n*n,5))'",
          "-vsync", "passthrough"),
    coded("broadcast_rate.mp4", "libx264", *X264, source=f"testsrc2=size={SIZE}:rate=30000/1001"),
    copied("edit_list.mp4", ".mp4", B_FRAMES, ["-ss", "0.7"], **H264),
    copied("edit_list_delay.mov", ".mov", B_FRAMES, [], "-output_ts_offset", "1.3", **H264),
    copied("start_at_7.mkv", ".mkv", B_FRAMES, [], "-output_ts_offset", 7, **H264),
    copied("start_at_5.ts", ".ts", B_FRAMES, [], "-output_ts_offset", 5, **H264),
    File("jump.ts", transport("jump_a.ts", 1), transport("jump_b.ts", 101), (joined, "jump.ts", "jump_a.ts", "jump_b.ts"),
         needs=("mpeg2video",)),
    File("jump_back.ts", transport("back_a.ts", 101), transport("back_b.ts", 1), (joined, "jump_back.ts", "back_a.ts", "back_b.ts"),
         needs=("mpeg2video",), mended=True),
    File("wrap.ts", transport("wrap.ts", 95442.9, 40), needs=("mpeg2video",)),
    # What the picture asks of who shows it.
    rotated(90), rotated(180), rotated(270),
    coded("pixels_16_11.mp4", "libx264", *X264, "-vf", "setsar=16/11", tags={"aspect": [16, 11]}),
    coded("pixels_8_9.mkv", "libx264", *X264, "-vf", "setsar=8/9", tags={"aspect": [8, 9]}),
    coded("pixels_16_15.avi", "mpeg4", "-vf", "setsar=16/15", tags={"aspect": [16, 15]}),
    tagged("smpte170m", "smpte170m", "smpte170m", "tv"), tagged("smpte170m", "smpte170m", "smpte170m", "pc"),
    tagged("bt709", "bt709", "bt709", "tv"), tagged("bt709", "bt709", "bt709", "pc"),
    tagged("bt2020nc", "bt2020-10", "bt2020", "tv"), tagged("bt2020nc", "bt2020-10", "bt2020", "pc"),
    coded("hdr.mkv", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error", "-pix_fmt", "yuv420p10le",
          "-colorspace", "bt2020nc", "-color_trc", "smpte2084", "-color_primaries", "bt2020", "-color_range", "tv", count=10,
          tags={"color": 3, "range": 1, "primaries": 9, "transfer": 16}),
    coded("untagged_small.mkv", "ffv1", "-pix_fmt", "yuv420p", count=5, tags={"color": 1, "range": 1}),
    coded("untagged_719.mkv", "ffv1", "-pix_fmt", "yuv420p", source="testsrc2=size=32x720:rate=25,scale=32:719,setsar=1", count=5,
          tags={"color": 1, "range": 1}),
    coded("untagged_720.mkv", "ffv1", "-pix_fmt", "yuv420p", source="testsrc2=size=32x720:rate=25", count=5,
          tags={"color": 2, "range": 1}),
    # Sizes.
    coded("odd.webm", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", 8, source="testsrc2=size=66x38:rate=25,scale=65:37,setsar=1"),
    coded("odd.mkv", "ffv1", "-pix_fmt", "yuv420p", source="testsrc2=size=66x38:rate=25,scale=65:37,setsar=1", count=10),
    coded("odd.avi", "mpeg4", source="testsrc2=size=66x38:rate=25,scale=65:37,setsar=1"),
    coded("odd_mjpeg.avi", "mjpeg", "-pix_fmt", "yuvj420p", source="testsrc2=size=66x38:rate=25,scale=65:37,setsar=1", count=10),
    coded("one_pixel.mkv", "ffv1", "-pix_fmt", "yuv420p", source="testsrc2=size=2x2:rate=25,scale=1:1", count=10),
    coded("one_pixel_rgb.mkv", "png", "-pix_fmt", "rgb24", source="testsrc2=size=2x2:rate=25,scale=1:1", count=10),
    coded("one_picture.mp4", "libx264", *X264, count=1),
    coded("wide.mkv", "ffv1", "-pix_fmt", "yuv420p", source="testsrc2=size=2050x4:rate=25,scale=2051:3,setsar=1", count=3),
    # What stands beside the pictures.
    File("sound.mp4", ["-f", "lavfi", "-i", SOURCE, *SOUND, "-t", 1.2, "-c:v", "libx264", *X264, "-c:a", "aac", "sound.mp4"], **H264),
    File("sound_first.mkv", [*SOUND, "-f", "lavfi", "-i", SOURCE, "-map", "0:a", "-map", "1:v", "-t", 1.2, "-c:v", "libx264", *X264,
                             "-c:a", "flac", "sound_first.mkv"], **H264),
    File("subtitles.mkv", (written, "words.srt", WORDS),
         ["-f", "lavfi", "-i", SOURCE, "-i", "words.srt", "-t", 1.2, "-c:v", "libx264", *X264, "-c:s", "srt", "subtitles.mkv"],
         **H264),
    File("second_stream.mkv", ["-f", "lavfi", "-i", SOURCE, "-f", "lavfi", "-i", "mandelbrot=size=48x32:rate=10", "-map", "0", "-map",
                               "1", "-t", 1, "-c:v", "ffv1", "-pix_fmt", "yuv420p", "second_stream.mkv"], stream=1),
    File("cover.mp4", ["-f", "lavfi", "-i", "color=c=blue:size=200x200", "-frames:v", 1, "cover.png"],
         ["-f", "lavfi", "-i", SOURCE, "-i", "cover.png", "-map", 0, "-map", 1, "-t", 1, "-c:v:0", "libx264", "-preset:v:0",
          "veryfast", "-pix_fmt:v:0", "yuv420p", "-c:v:1", "copy", "-disposition:v:1", "attached_pic", "cover.mp4"], **H264),
    # Cut off, and damaged in the middle.
    File("cut_off.mp4", ["-f", "lavfi", "-i", SOURCE, *B_FRAMES, "-movflags", "+faststart", "whole_cut.mp4"],
         (cut_off, "whole_cut.mp4", "cut_off.mp4", 0.7), lost=True, threads=1, **H264),
    File("cut_off.mkv", ["-f", "lavfi", "-i", SOURCE, *B_FRAMES, "whole_cut.mkv"],
         (cut_off, "whole_cut.mkv", "cut_off.mkv", 0.7), threads=1, **H264),
    File("cut_off.avi", ["-f", "lavfi", "-i", SOURCE, "-frames:v", 50, "-c:v", "mpeg4", "whole_cut.avi"],
         (cut_off, "whole_cut.avi", "cut_off.avi", 0.7), threads=1),
    File("cut_off.ts", ["-f", "lavfi", "-i", SOURCE, *B_FRAMES, "whole_cut.ts"], (cut_off, "whole_cut.ts", "cut_off.ts", 0.7),
         threads=1, **H264),
    File("damaged.mkv", ["-f", "lavfi", "-i", SOURCE, *B_FRAMES, "whole_damaged.mkv"],
         (damaged, "whole_damaged.mkv", "damaged.mkv", (0.4, 0.6), 40), threads=1, **H264),
    File("damaged.ts", ["-f", "lavfi", "-i", SOURCE, *B_FRAMES, "whole_damaged.ts"],
         (damaged, "whole_damaged.ts", "damaged.ts", (0.3, 0.5, 0.7), 400), threads=1, **H264),
    File("damaged.avi", ["-f", "lavfi", "-i", SOURCE, "-frames:v", 50, "-c:v", "mpeg4", "whole_damaged.avi"],
         (damaged, "whole_damaged.avi", "damaged.avi", (0.5,), 300), threads=1),
    File("damaged.mp4", ["-f", "lavfi", "-i", SOURCE, *B_FRAMES, "whole_damaged.mp4"],
         (damaged, "whole_damaged.mp4", "damaged.mp4", (0.3, 0.5), 60), threads=1, **H264),
    File("damaged_png.mkv", ["-f", "lavfi", "-i", SOURCE, "-frames:v", 20, "-c:v", "png", "-pix_fmt", "rgb24", "whole_png.mkv"],
         (damaged, "whole_png.mkv", "damaged_png.mkv", (0.5,), 60), threads=1, lost=True),
]


def make(file, folder):
    """Makes one file unless it is there with the same recipe; the path, or None with the encoder that is missing."""
    missing = [name for name in file.needs if name not in rig.encoders()]
    if missing:
        return None, f"this ffmpeg has no encoder {', '.join(missing)}"
    target, stamp = folder / file.name, folder / (file.name + ".stamp")
    if target.exists() and stamp.exists() and stamp.read_text() == file.stamp():
        return target, ""
    # In a folder of its own, so that two tests or two test programs may make the same file at the same time.
    workplace = folder / f"{file.name}.{os.getpid()}.{threading.get_ident()}"
    shutil.rmtree(workplace, ignore_errors=True)
    workplace.mkdir(parents=True)
    for step in file.steps:
        if callable(step[0]):
            step[0](workplace, *step[1:])
        else:
            call([*FFMPEG, "-threads", 1, *step], cwd=workplace)
    os.replace(workplace / file.name, target)
    stamp.write_text(file.stamp())
    shutil.rmtree(workplace)
    return target, ""


def make_all(folder, files=None):
    """All files, as many at a time as the machine has cores: name → (path or None, reason)."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = FILES if files is None else files
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        return dict(zip([file.name for file in files], workers.map(lambda file: make(file, folder), files)))
