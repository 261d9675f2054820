#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/float16.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/utf8.h"

namespace vedette {
namespace {

TEST(Json, RoundTripKeepsOrderAndTypes) {
  const char* text = R"({"b": [1, -2, 3.5, 1e3, true, null], "a": {"x": "h\u00e9\n"}})";
  const auto parsed = parse_json(text, "test");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->dump(), "{\"b\": [1, -2, 3.5, 1000.0, true, null], \"a\": {\"x\": \"h\xc3\xa9\\n\"}}");
}

TEST(Json, RefusesHostileText) {
  EXPECT_FALSE(parse_json("{\"a\": 1, \"a\": 2}", "t").ok());
  EXPECT_FALSE(parse_json(std::string(100000, '['), "t").ok());
  EXPECT_FALSE(parse_json("[\"\xff\"]", "t").ok());
  EXPECT_FALSE(parse_json("", "t").ok());
  EXPECT_FALSE(parse_json("[1] x", "t").ok());
  EXPECT_FALSE(parse_json("[1e999999]", "t").ok());
  EXPECT_FALSE(parse_json("[1]", "t", {.max_bytes = 2}).ok());
  const auto error = parse_json("{:", "request body").error();
  EXPECT_NE(error.message.find("request body"), std::string::npos);
  EXPECT_NE(error.message.find("byte 2"), std::string::npos) << error.message;
}

TEST(JsonReader, NamesFieldExpectedAndFound) {
  const auto json = parse_json(R"({"layers": "six", "eps": 1e-6, "n": 4.0})", "config.json");
  const JsonReader reader(*json, "config.json");
  EXPECT_EQ(*reader.integer("n", 0, 10), 4);
  EXPECT_EQ(*reader.integer("absent", 0, 10, 7), 7);
  const auto bad = reader.integer("layers", 1, 4096);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "config.json: 'layers' must be an integer from 1 to 4096, found string \"six\"");
}

TEST(Float16, EveryHalfRoundTripsAndRoundingIsToEven) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const float f = f16_to_float(static_cast<uint16_t>(h));
    if (std::isnan(f)) continue;
    ASSERT_EQ(float_to_f16(f), h);
    ASSERT_EQ(float_to_bf16(bf16_to_float(static_cast<uint16_t>(h))), h) << h;
  }
  EXPECT_EQ(float_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(0x1p-25f), 0);  // tie to even
  EXPECT_EQ(float_to_f16(0x1.8p-25f), 1);
  EXPECT_EQ(float_to_f16(1.0f + 0x1p-11f), 0x3c00);  // tie to even
  EXPECT_EQ(float_to_f16(1.0f + 0x1.8p-10f), 0x3c02);
}

TEST(Utf8, RepairsMaximalSubparts) {
  EXPECT_EQ(repair_utf8("a\xf0\x9f\x98z"), "a\xef\xbf\xbdz");
  EXPECT_EQ(repair_utf8("\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(repair_utf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(complete_utf8_prefix("ab\xf0\x9f\x98"), 2u);
  EXPECT_EQ(complete_utf8_prefix("ab\xff"), 3u);
  EXPECT_TRUE(is_valid_utf8("\xf0\x9f\x98\x80"));
}

TEST(Utf8, ControlsAreShownAsText) {
  EXPECT_EQ(without_controls("a\x1b[2J\x07\x7f\xc2\x9b\xff\t\xc3\xa9", LineBreaks::kSpaces),
            "a\\x1b[2J\\x07\\x7f\\x9b\xef\xbf\xbd\\x09\xc3\xa9");
  EXPECT_EQ(without_controls("a\r\nb", LineBreaks::kSpaces), "a  b");
  EXPECT_EQ(without_controls("a\r\nb", LineBreaks::kKeep), "a\r\nb");
  EXPECT_EQ(without_controls("\xc2", LineBreaks::kKeep), "\xef\xbf\xbd");
}

TEST(Utf8, OverlongTextsKeepTheirEnds) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("0123456789abcdef", 13), "0123 ... cdef");
  EXPECT_EQ(shortened("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 11 - 2), "\xc3\xa9 ... \xc3\xa9");
  EXPECT_EQ(shortened("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 11), "\xc3\xa9 ... \xc3\xa9");
  EXPECT_EQ(shortened("0123456789", 4), "0123");
}

TEST(Log, ALineHasNoControls) {
  ::testing::internal::CaptureStderr();
  log::warning("{}", "name \x1b]0;x\x07\nsecond");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: name \\x1b]0;x\\x07 second\n");
}

TEST(MappedFile, TruncationIsAnErrorNotASignal) {
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("vedette_truncated_{}", ::getpid());
  std::ofstream(path) << std::string(20000, 'x');
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path, 100);
  volatile unsigned sum = 0;
  for (const std::byte b : (*file)->bytes()) sum = sum + static_cast<unsigned>(b);
  EXPECT_EQ(sum, 100u * 'x');
  EXPECT_FALSE((*file)->intact());
  std::filesystem::remove(path);
  EXPECT_EQ(MappedFile::open("/nonexistent/x").error().kind, ErrorKind::kNotFound);
  EXPECT_FALSE(MappedFile::open("/tmp").ok());
}

// Pages of the process's memory that lie under `bytes`.
size_t pages_present(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(bytes.data()) / page;
  std::vector<uint64_t> entries(bytes.size() / page);
  const size_t size = entries.size() * sizeof(uint64_t);
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(::pread(map, entries.data(), size, static_cast<off_t>(first * sizeof(uint64_t))),
            static_cast<ssize_t>(size));
  ::close(map);
  return static_cast<size_t>(std::ranges::count_if(entries, [](uint64_t entry) { return (entry >> 63) != 0; }));
}

TEST(MappedFile, ReleasedPagesLeaveMemoryAndComeBack) {
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("vedette_released_{}", ::getpid());
  std::ofstream(path) << std::string(1 << 20, 'x');
  {
    const auto file = MappedFile::open(path);
    ASSERT_TRUE(file.ok());
    const std::span<const std::byte> bytes = (*file)->bytes();
    const auto all_read = [&] {
      return std::ranges::count(bytes, std::byte{'x'}) == static_cast<std::ptrdiff_t>(bytes.size());
    };
    EXPECT_TRUE(all_read());
    EXPECT_GT(pages_present(bytes), 0u);
    release_mapped_pages(bytes.subspan(1, bytes.size() - 2));
    EXPECT_EQ(pages_present(bytes), 0u);
    EXPECT_TRUE(all_read());
    EXPECT_TRUE((*file)->intact());
  }
  std::filesystem::remove(path);
  const std::vector<std::byte> elsewhere(1 << 20, std::byte{7});
  release_mapped_pages(elsewhere);
  EXPECT_EQ(std::ranges::count(elsewhere, std::byte{7}), 1 << 20);
}

TEST(MappedFile, APipeIsRefusedAtOnce) {
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("vedette_pipe_{}", ::getpid());
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto opened = MappedFile::open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("not a regular file"), std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace vedette
