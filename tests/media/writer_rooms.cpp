// The rooms of video.writer that need no film: rates, even films, names of segments, containers, repacking.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/media/containers.h"
#include "plugins/media/encoders.h"
#include "plugins/media/frames.h"
#include "plugins/media/muxer.h"
#include "plugins/media/nearest_name.h"
#include "plugins/media/picture_times.h"
#include "plugins/media/rates.h"
#include "plugins/media/segments.h"
#include "tests/contains.h"
#include "tests/media/films.h"

namespace millrace::media {
namespace {

bool same(AVRational a, int numerator, int denominator) { return a.num == numerator && a.den == denominator; }

template <class Function>
std::string refusal_of(Function&& function) {
  try {
    function();
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return "";
}

} // namespace

TEST_CASE("a period of nanoseconds is the rate that was meant") {
  CHECK(same(rate_of_period(40'000'000), 25, 1));
  CHECK(same(rate_of_period(33'333'333), 30, 1));
  CHECK(same(rate_of_period(33'366'667), 30000, 1001));
  CHECK(same(rate_of_period(41'708'333), 24000, 1001));
  CHECK(same(rate_of_period(80'000'000), 25, 2));
  CHECK(same(rate_of_period(2'000'000'000), 1, 2));
  CHECK(same(rate_of_period(0), 25, 1));
  CHECK(same(rate_of_period(-5), 25, 1));
  CHECK(same(rate_of_period(10), 25, 1)); // a hundred million a second
}

TEST_CASE("a rate is read from a number or a fraction, and from nothing else") {
  CHECK(same(read_rate("rate", "30"), 30, 1));
  CHECK(same(read_rate("rate", "29.97"), 30000, 1001));
  CHECK(same(read_rate("rate", "30000/1001"), 30000, 1001));
  CHECK(same(read_rate("rate", "12.5"), 25, 2));
  CHECK(same(read_rate("rate", "60/2"), 30, 1));
  for (const char* text : {"", "x", "0", "-3", "30/0", "30/", "1e9", "30 fps", "nan"}) {
    INFO(std::string(text));
    CHECK(contains(refusal_of([&] { read_rate("rate", text); }), "parameter 'rate'"));
  }
}

TEST_CASE("a time base holds the nominal rate exactly, and other times to a microsecond") {
  for (const AVRational rate : {AVRational{25, 1}, {30000, 1001}, {24, 1}, {15, 2}, {120, 1}, {1, 10}, {99999, 100}}) {
    const AVRational base = time_base_for(rate);
    INFO(rate.num, "/", rate.den);
    CHECK(base.num == 1);
    CHECK(base.den <= 1000000);
    CHECK(base.den > 500000);
    CHECK(int64_t{base.den} * rate.den % rate.num == 0);
  }
  CHECK(time_base_for({30000, 1001}, 65535).den == 60000);
  CHECK(in_units(1'001'000'000 / 30, time_base_for({30000, 1001})) == 1001 * 32);
}

TEST_CASE("an even film of half the rate shows every other picture at its time, and one of twice shows each twice") {
  EvenRate half({30, 1});
  std::vector<int> shown;
  for (int i = 0; i < 60; ++i)
    if (half.put(int64_t{i} * 1'000'000'000 / 60, 16'666'666).is_shown) shown.push_back(i);
  CHECK(shown.size() == 30);
  for (size_t k = 0; k < shown.size(); ++k) CHECK(shown[k] == static_cast<int>(2 * k));
  EvenRate twice({60, 1});
  int64_t repeats = 0;
  for (int i = 0; i < 30; ++i) repeats += twice.put(int64_t{i} * 1'000'000'000 / 30, 33'333'333).repeats;
  repeats += twice.repeats_until(1'000'000'000);
  CHECK(repeats == 30);
  CHECK(twice.count() == 60);
}

TEST_CASE("an even film is as long as the times that it is made from, whatever they are") {
  uint64_t state = 12345;
  for (const AVRational rate : {AVRational{30, 1}, {24000, 1001}, {7, 2}}) {
    EvenRate even(rate);
    int64_t now = 0, shown = 0, dropped = 0, repeats = 0;
    for (int i = 0; i < 500; ++i) {
      const EvenRate::Place place = even.put(now, 0);
      repeats += place.repeats;
      ++(place.is_shown ? shown : dropped);
      state = state * 6364136223846793005u + 1442695040888963407u;
      now += static_cast<int64_t>((state >> 33) % 150'000'000) + 1;
    }
    repeats += even.repeats_until(now);
    const double places = static_cast<double>(now) * rate.num / rate.den / 1e9;
    CHECK(shown + dropped == 500);
    CHECK(even.count() == shown + repeats);
    CHECK(std::abs(static_cast<double>(even.count()) - places) <= 1);
  }
}

TEST_CASE("free times rise strictly, and say when they had to be moved") {
  FreeTimes grid({1, 10});
  const auto is = [](FreeTimes::Time time, int64_t at, bool moved, bool nudged) {
    return time.at == at && time.moved == moved && time.nudged == nudged;
  };
  CHECK(is(grid.put(0, 1000), 0, false, false));
  CHECK(is(grid.put(104'000'000, 10'000'000), 1, false, false));
  CHECK(is(grid.put(120'000'000, 10'000'000), 2, true, true));
  CHECK(is(grid.put(500'000'000, 1000), 5, false, false));
  CHECK(is(grid.put(620'000'000, 1000), 6, true, false));
}

TEST_CASE("an even film of a third of the rate ends where its media times end, for any number of pictures") {
  for (int pictures = 1; pictures <= 70; ++pictures) {
    EvenRate third({10, 1});
    int64_t shown = 0, repeats = 0;
    for (int i = 0; i < pictures; ++i) {
      const EvenRate::Place place = third.put(int64_t{i} * 1'000'000'000 / 30, 33'333'333);
      shown += place.is_shown;
      repeats += place.repeats;
    }
    repeats += third.repeats_until(int64_t{pictures} * 1'000'000'000 / 30);
    INFO(pictures, " pictures");
    CHECK(third.count() == (pictures + 2) / 3);
    CHECK(shown == third.count());
    CHECK(repeats == 0);
  }
}

TEST_CASE("a segment's length is a time or a size") {
  CHECK(read_segment_length("10min").time_ns == 600'000'000'000);
  CHECK(read_segment_length("2").time_ns == 2'000'000'000);
  CHECK(read_segment_length("500ms").time_ns == 500'000'000);
  CHECK(read_segment_length("100MB").bytes == 100'000'000);
  CHECK(read_segment_length("1GiB").bytes == uint64_t{1} << 30);
  CHECK(!read_segment_length("").is_set());
  for (const char* text : {"x", "MB", "0", "-1s", "10 min", "1ms", "5B", "nanMB", "1e30s"}) {
    INFO(std::string(text));
    CHECK(contains(refusal_of([&] { read_segment_length(text); }), "parameter 'segment'"));
  }
}

TEST_CASE("a segment's name has its number where the pattern says, else before the extension") {
  CHECK(segment_path("out/cam-%03d.mp4", 7) == "out/cam-007.mp4");
  CHECK(segment_path("cam-%d.mp4", 12) == "cam-12.mp4");
  CHECK(segment_path("cam-{index}.mp4", 7) == "cam-007.mp4");
  CHECK(segment_path("out.d/cam.mp4", 1000) == "out.d/cam-1000.mp4");
  CHECK(segment_path("100%.mp4", 2) == "100%-002.mp4");
  CHECK(contains(refusal_of([] { check_segment_pattern("a%d-%d.mp4"); }), "more than one place"));
}

TEST_CASE("a list names a segment so that FFmpeg finds it, whatever its name is") {
  CHECK(list_name("s/all.txt", "s/take-000.mkv") == "'take-000.mkv'");
  CHECK(list_name("s/all.txt", "s/12:30 0.mkv") == "'./12:30 0.mkv'");
  CHECK(list_name("s/all.txt", "s/it's #1.mkv") == "'./it'\\''s #1.mkv'");
  CHECK(list_name("s/all.txt", "s/a\\b.mkv") == "'./a\\b.mkv'");
  CHECK(list_name("s/all.txt", "/elsewhere/0.mkv") == "'file:/elsewhere/0.mkv'");
  CHECK(list_name("/a?b/all.txt", "/a?b/0.mkv") == "'file:/a?b/0.mkv'");
  CHECK(refusal_of([] { check_list_name("s/12:30 'x' #.mkv"); }).empty());
  CHECK(contains(refusal_of([] { check_list_name("s/a\nb.mkv"); }), "line break"));
}

TEST_CASE("transparency is kept where codec and container hold it, and RGB without it gets none") {
  struct Case {
    const char *container, *codec;
    AVPixelFormat rgba; // of the film; none: the plan converts before
  };
  for (const auto& [container, codec, rgba] :
       {Case{"webm", "vp9", AV_PIX_FMT_YUVA420P}, Case{"mkv", "vp8", AV_PIX_FMT_YUVA420P},
        Case{"mov", "prores", AV_PIX_FMT_YUVA444P10LE}, Case{"mkv", "ffv1", AV_PIX_FMT_BGRA},
        Case{"mp4", "vp9", AV_PIX_FMT_NONE}, Case{"mp4", "h264", AV_PIX_FMT_NONE}}) {
    INFO(std::string(container), " ", std::string(codec));
    EncoderWish wish;
    wish.codec = codec;
    const EncoderChoice choice = choose_encoder(container_of("", container), wish);
    const AVPixelFormat from_rgba = encoded_format(choice, wish, Pixel::rgba8);
    CHECK((from_rgba == rgba || (rgba == AV_PIX_FMT_BGRA && from_rgba != AV_PIX_FMT_NONE)));
    if (rgba == AV_PIX_FMT_NONE || rgba == AV_PIX_FMT_BGRA) continue;
    for (const Pixel opaque : {Pixel::gray8, Pixel::rgb8, Pixel::nv12, Pixel::i420, Pixel::p010}) {
      const AVPixelFormat format = encoded_format(choice, wish, opaque);
      CHECK(format != AV_PIX_FMT_NONE);
      CHECK(format != rgba);
    }
  }
}

TEST_CASE("a bit rate is a number with a unit") {
  CHECK(read_bitrate("4M") == 4'000'000);
  CHECK(read_bitrate("500k") == 500'000);
  CHECK(read_bitrate("") == 0);
  for (const char* text : {"4 M", "x", "-4M", "1", "4MB"})
    CHECK(contains(refusal_of([&] { read_bitrate(text); }), "parameter 'bitrate'"));
}

TEST_CASE("a container follows from its name, the extension or the address") {
  CHECK(container_of("a/b.MP4", "").name == "mp4");
  CHECK(container_of("a.m4v", "").name == "mp4");
  CHECK(container_of("a.mkv", "avi").name == "avi");
  CHECK(container_of("-", "matroska").name == "mkv");
  CHECK(container_of("rtmp://host/app", "").name == "flv");
  CHECK(container_of("udp://host:1234", "").name == "ts"); // the name that tables of codecs know
  CHECK(choose_encoder(container_of("srt://host:1234", ""), {}).codec ==
        choose_encoder(container_of("a.ts", ""), {}).codec);
  CHECK(container_of("a.y4m", "").times == Times::none);
  CHECK(container_of("a.avi", "").times == Times::grid);
  CHECK(container_of("a.mov", "").is_mov);
  CHECK(contains(refusal_of([] { container_of("a.png", ""); }), "image.writer"));
  CHECK(contains(refusal_of([] { container_of("-", ""); }), "`container` names it"));
  CHECK(contains(refusal_of([] { container_of("film", ""); }), "has no extension"));
  CHECK(contains(refusal_of([] { container_of("a.mp5", ""); }), "try: path=a.mp4"));
  CHECK(contains(refusal_of([] { container_of("a.mp4", "mkb"); }), "did you mean 'mkv'?"));
}

TEST_CASE("what a container says that it holds is what its muxer writes") {
  for (const std::string& name : container_names()) {
    const Container container = container_of("", name);
    for (const std::string& codec : codec_names(&container)) {
      EncoderWish wish;
      wish.codec = codec;
      const EncoderChoice choice = choose_encoder(container, wish);
      if (codec == "rawvideo" || name == "y4m" || name == "gif") continue; // whose formats the container chooses
      EncodedPictures pictures;
      for (const Pixel pixel : {Pixel::i420, Pixel::rgb8, Pixel::p010})
        if (pictures.format == AV_PIX_FMT_NONE) pictures.format = encoded_format(choice, wish, pixel);
      pictures.width = pictures.height = 64;
      pictures.meaning.range = MR_RANGE_FULL;
      const Parameters parameters = parameters_of(*open_encoder(choice, wish, pictures, true, true, nullptr));
      MuxedStreams streams;
      streams.video = parameters.get();
      Muxer::Options options;
      options.container = container;
      INFO(name, " ", codec);
      CHECK(refusal_of([&] { Muxer::try_header(options, streams, "film"); }) == "");
    }
  }
}

TEST_CASE("a codec has an encoder that opens, or a refusal that helps") {
  const Container mp4 = container_of("a.mp4", ""), webm = container_of("a.webm", "");
  CHECK(choose_encoder(mp4, {}).codec == "h264");
  CHECK(choose_encoder(webm, {}).codec == "vp9");
  EncoderWish wish;
  for (const auto& [asked, codec] :
       {std::pair{"MP4V", "mpeg4"}, {"avc1", "h264"}, {"libx264", "h264"}, {"H265", "hevc"}}) {
    wish.codec = asked;
    CHECK(choose_encoder(mp4, wish).codec == codec);
  }
  wish.codec = "h2644";
  CHECK(contains(refusal_of([&] { choose_encoder(mp4, wish); }), "did you mean 'h264'?"));
  wish.codec = "h264";
  const std::string refused = refusal_of([&] { choose_encoder(webm, wish); });
  CHECK(contains(refused, "container 'webm' cannot hold codec 'h264'; it can hold vp9"));
  wish.codec = "aac"; // there is an encoder of this name, of sound
  CHECK(contains(refusal_of([&] { choose_encoder(mp4, wish); }), "there is no codec 'aac'"));
}

TEST_CASE("what the machine offers is said once each, and what does not open is said to") {
  std::vector<std::pair<std::string, std::string>> said;
  Offers offers(&said, [](void* context, const char* part, const char* name, const char* words) {
    CHECK(std::string(words) != "");
    static_cast<std::vector<std::pair<std::string, std::string>>*>(context)->push_back({part, name});
  });
  offer_encoders(offers);
  CHECK(std::set(said.begin(), said.end()).size() == said.size());
  CHECK(std::count(said.begin(), said.end(), std::pair<std::string, std::string>("containers", "mp4")) == 1);
  CHECK(std::count(said.begin(), said.end(), std::pair<std::string, std::string>("encoders", "ffv1")) == 1);
}

TEST_CASE("a size that an encoder does not take is refused with the crop that helps") {
  const EncoderChoice choice = choose_encoder(container_of("a.mp4", ""), {});
  EncodedPictures pictures;
  pictures.format = AV_PIX_FMT_YUV420P;
  pictures.width = 641;
  pictures.height = 359;
  CHECK(contains(refusal_of([&] { open_encoder(choice, {}, pictures, true, true, nullptr); }),
                 "`image.crop width=640 height=358`"));
  pictures.width = pictures.height = 1;
  CHECK(contains(refusal_of([&] { open_encoder(choice, {}, pictures, true, true, nullptr); }),
                 "does not take pictures of 1 × 1"));
  pictures.width = pictures.height = 64;
  EncoderWish wish;
  wish.preset = "quick";
  CHECK(contains(refusal_of([&] { open_encoder(choice, wish, pictures, true, true, nullptr); }),
                 "has no preset 'quick'"));
}

TEST_CASE("a preset is one of the encoder's own, and another is refused with the nearest") {
  EncodedPictures pictures;
  pictures.format = AV_PIX_FMT_YUV420P;
  pictures.width = pictures.height = 64;
  for (const char* name : {"libx264", "libx264rgb", "libx265", "h264_nvenc", "hevc_nvenc"}) {
    const AVCodec* encoder = avcodec_find_encoder_by_name(name);
    if (!encoder) continue;
    INFO(name);
    EncoderWish wish;
    wish.preset = "mediun";
    const std::string refused = refusal_of([&] {
      open_encoder({encoder, "", 0, ""}, wish, pictures, true, true, nullptr);
    });
    CHECK(contains(refused, "the encoder " + std::string(name) + " has no preset 'mediun' (did you mean 'medium'?)"));
    CHECK(contains(refused, "slow"));
  }
}

TEST_CASE("ten bits of p010 are the same ten bits in three planes") {
  const testing::Value value = numbered(Pixel::p010, 33, 17, 4);
  FrameMaker frames(AV_PIX_FMT_YUV420P10LE, true, {MR_COLOR_BT709, MR_RANGE_LIMITED});
  const ImageSpan picture = value.image();
  const AVFrame* frame = frames.copy(picture);
  bool luma = true, chroma = true;
  const auto in = [&](uint32_t plane, uint32_t y, uint32_t x) {
    return reinterpret_cast<const uint16_t*>(picture.row(y, plane))[x] >> 6;
  };
  const auto out = [&](int plane, uint32_t y, uint32_t x) {
    return int{
        reinterpret_cast<const uint16_t*>(frame->data[plane] + y * static_cast<size_t>(frame->linesize[plane]))[x]};
  };
  for (uint32_t y = 0; y < 17; ++y)
    for (uint32_t x = 0; x < 33; ++x) luma = luma && in(0, y, x) == out(0, y, x);
  for (uint32_t y = 0; y < 9; ++y)
    for (uint32_t x = 0; x < 17; ++x)
      chroma = chroma && in(1, y, 2 * x) == out(1, y, x) && in(1, y, 2 * x + 1) == out(2, y, x);
  CHECK(luma);
  CHECK(chroma);
  CHECK(frames.converted() == 0);
}

TEST_CASE("lent memory that somebody keeps is found out") {
  const testing::Value value = numbered(Pixel::i420, 64, 48, 0);
  FrameMaker frames(AV_PIX_FMT_YUV420P, true, {MR_COLOR_BT709, MR_RANGE_LIMITED});
  AVFrame* lent = frames.lend(value.image());
  CHECK(frames.is_lent());
  CHECK(lent->data[0] == value.data());
  CHECK_NOTHROW(frames.release());
  Frame keeper(av_frame_clone(frames.lend(value.image())));
  CHECK_THROWS_AS(frames.release(), std::logic_error);
}

TEST_CASE("a container that writes files of its own is refused, by extension and by name; an address may have one") {
  for (const char* path : {"x.m3u8", "x.mpd"}) CHECK_THROWS_AS(container_of(path, ""), std::invalid_argument);
  for (const char* name : {"hls", "dash", "segment", "tee", "image2"})
    CHECK_THROWS_AS(container_of("x.mp4", name), std::invalid_argument);
  CHECK(container_of("rtsp://127.0.0.1/a", "").format != nullptr);
}

} // namespace millrace::media
