// The parts below the connection: targets, bodies, requests at every split of their bytes.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <random>

#include "server/http/body_decoder.h"
#include "server/http/request_parser.h"
#include "server/http/target.h"

namespace vedette::server::transport {
namespace {

std::string path_of(std::string_view target, std::string_view prefix = "") {
  const auto parsed = parse_target(target, prefix);
  return parsed.ok() ? parsed->path : "error";
}

TEST(Target, Paths) {
  EXPECT_EQ(path_of("/"), "/");
  EXPECT_EQ(path_of("///"), "/");
  EXPECT_EQ(path_of("/?a"), "/");
  EXPECT_EQ(path_of("/v1/models//?x#y"), "/v1/models");
  EXPECT_EQ(path_of("/a%20b/%C3%A9"), "/a b/\xc3\xa9");
  EXPECT_EQ(path_of("/models/org%2Fname"), "/models/org/name");
  EXPECT_EQ(path_of("/a+b"), "/a+b");
  EXPECT_EQ(path_of("HTTP://h?q"), "/");
  EXPECT_EQ(path_of("https://h:1/p/"), "/p");
  EXPECT_EQ(path_of("*"), "*");
  EXPECT_EQ(path_of("/p/q", "p"), "/q");
  for (const char* bad : {"", "x", "http://", "http:///a", "/%", "/%4", "/%zz", "/%00", "/%0a", "/?%00", "/?a=%g0"})
    EXPECT_EQ(path_of(bad), "error") << bad;
}

TEST(Target, QueryKeepsOrderAndRepeats) {
  const auto parsed = parse_target("/?a=1&&b&a=%26+%2B&=x&c=d=e", "");
  ASSERT_TRUE(parsed.ok());
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"a", "1"}, {"b", ""}, {"a", "& +"}, {"", "x"}, {"c", "d=e"}};
  EXPECT_EQ(parsed->query, expected);
}

std::string zlib_pack(std::string_view text, int window) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd_pack(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

struct Unpacked {
  int status = 200;
  std::string body;
};

Unpacked unpack(std::string_view coding, std::string_view packed, size_t piece, size_t limit = 1 << 20) {
  const auto decoder = make_body_decoder(coding, limit);
  for (size_t at = 0; at < packed.size(); at += piece)
    if (const auto problem = decoder->feed(packed.substr(at, piece))) return {problem->status, problem->message};
  if (const auto problem = decoder->finish()) return {problem->status, problem->message};
  return {200, decoder->take()};
}

std::vector<std::pair<std::string, std::string>> packings(std::string_view text) {
  return {{"gzip", zlib_pack(text, 31)},
          {"X-GZIP", zlib_pack(text, 31)},
          {"deflate", zlib_pack(text, 15)},
          {"deflate", zlib_pack(text, -15)},
          {"zstd", zstd_pack(text)},
          {"identity", std::string(text)},
          {"gzip", zlib_pack(text.substr(0, text.size() / 2), 31) + zlib_pack(text.substr(text.size() / 2), 31)},
          {"zstd", zstd_pack(text.substr(0, text.size() / 2)) + zstd_pack(text.substr(text.size() / 2))}};
}

TEST(BodyDecoder, EveryCodingInPiecesOfAnySize) {
  std::string text;
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>('a' + random() % 4);
  for (const auto& [coding, packed] : packings(text))
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, packed.size()}) {
      const Unpacked result = unpack(coding, packed, piece);
      EXPECT_EQ(result.status, 200) << coding << " " << piece << " " << result.body;
      EXPECT_TRUE(result.body == text) << coding << " " << piece;
    }
  for (const char* coding : {"gzip", "deflate", "zstd", ""}) EXPECT_EQ(unpack(coding, "", 1).status, 200) << coding;
}

TEST(BodyDecoder, TheLimitHoldsForWhatComesOut) {
  const std::string text(1 << 20, 'a');
  for (const auto& [coding, packed] : packings(text)) {
    EXPECT_EQ(unpack(coding, packed, 4096, text.size()).status, 200) << coding;
    EXPECT_EQ(unpack(coding, packed, 4096, text.size() - 1).status, 413) << coding;
    EXPECT_EQ(unpack(coding, packed, 1, 1000).status, 413) << coding;
  }
}

TEST(BodyDecoder, CutAndDamagedDataIsRefused) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("{},", i * i);
  for (const auto& [coding, packed] : packings(text)) {
    if (coding == "identity") continue;
    EXPECT_EQ(unpack(coding, packed.substr(0, packed.size() - 1), 100).status, 400) << coding;
    EXPECT_EQ(unpack(coding, packed + "tail that is no member", 100).status, 400) << coding;
    EXPECT_EQ(unpack(coding, "\xff\xff\xff\xff plain text", 100).status, 400) << coding;
  }
  // A frame that asks for a window of 128 MiB, more than HTTP's 8.
  const std::string wide("\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00", 9);
  EXPECT_EQ(unpack("zstd", wide, 100).status, 400);
  EXPECT_EQ(make_body_decoder("br", 10), nullptr);
  EXPECT_EQ(make_body_decoder("gzip, gzip", 10), nullptr);
}

// Feeds two pieces as the connection does; 0: more is needed, 200: complete.
int parse(const std::string& bytes, size_t split, HttpRequest* request = nullptr, std::string* rest = nullptr,
          const HttpSettings& settings = {}) {
  RequestParser parser(settings);
  size_t start = 0;
  for (const size_t end : {split, bytes.size()}) {
    if (start == end) continue;
    size_t consumed = 0;
    const auto step = parser.feed(std::string_view(bytes).substr(start, end - start), consumed);
    start += consumed;
    if (step == RequestParser::Step::kProblem) return parser.problem().status;
    if (step != RequestParser::Step::kComplete) continue;
    if (rest != nullptr) *rest = bytes.substr(start);
    if (request != nullptr) *request = parser.take();
    return 200;
  }
  return 0;
}

TEST(RequestParser, EverySplitGivesTheSameRequest) {
  const std::string body = zlib_pack("the body of a request", 31);
  const std::vector<std::string> requests = {
      "GET /a?b=c HTTP/1.1\r\nHost: h\r\nX-Long:   spaced value \t\r\n\r\n",
      "\r\n\r\nPOST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
      "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n006\r\n world\r\n0\r\n\r\n",
      "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n1;a=\"b\"\r\nx\r\n0\r\nTrailer: t\r\n\r\n",
      fmt::format("POST /a HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n{}", body.size(),
                  body)};
  for (const std::string& text : requests) {
    HttpRequest whole;
    std::string rest;
    ASSERT_EQ(parse(text + "GET", 0, &whole, &rest), 200) << text;
    EXPECT_EQ(rest, "GET");
    for (size_t split = 0; split <= text.size(); ++split) {
      HttpRequest request;
      ASSERT_EQ(parse(text, split, &request), 200) << text << " at " << split;
      EXPECT_EQ(request.headers, whole.headers);
      EXPECT_EQ(request.body, whole.body);
      EXPECT_EQ(request.target, whole.target);
    }
  }
}

// Shapes in which two readers of the same bytes see different requests, and plain nonsense.
TEST(RequestParser, AmbiguousAndMalformedRequestsAreRefused) {
  const std::string line = "POST /a HTTP/1.1\r\nHost: h\r\n";
  const std::string chunked = line + "Transfer-Encoding: chunked\r\n";
  const std::vector<std::pair<std::string, int>> cases = {
      {line + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {chunked + "Content-Length: 5\r\n\r\n0\r\n\r\n", 400},
      {line + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400},
      {line + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400},
      {line + "Content-Length: 5, 5\r\n\r\nhello", 400},
      {line + "Content-Length: +5\r\n\r\nhello", 400},
      {line + "Content-Length: -5\r\n\r\nhello", 400},
      {line + "Content-Length: 0x5\r\n\r\nhello", 400},
      {line + "Content-Length: 5 5\r\n\r\nhello", 400},
      {line + "Content-Length: \r\n\r\nhello", 400},
      {line + "Content-Length: 18446744073709551621\r\n\r\nhello", 400},
      {chunked + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {chunked + "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400},
      {line + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {line + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501},
      {line + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
      {line + "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n0\r\n\r\n",
       400},
      {line + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
      {line + " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {line + "X: a\r\n folded\r\n\r\n", 400},
      {line + "X: a\r\n\tTransfer-Encoding: chunked\r\n\r\n", 400},
      {line + "X: a\nContent-Length: 5\r\n\r\nhello", 400},
      {line + "X: a\rContent-Length: 5\r\n\r\nhello", 400},
      {line + std::string("X: a\0b\r\n\r\n", 10), 400},
      {line + "Bad Name: x\r\n\r\n", 400},
      {line + ": empty\r\n\r\n", 400},
      {line + "NoColon\r\n\r\n", 400},
      {line + "Host: other\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: h\n\n", 400},
      {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400},
      {"GET /\r\nHost: h\r\n\r\n", 400},
      {"GET x HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"CONNECT a:1 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15), 400},
      {chunked + "\r\n-1\r\n", 400},
      {chunked + "\r\n+1\r\nx\r\n", 400},
      {chunked + "\r\n0x1\r\nx\r\n0\r\n\r\n", 400},
      {chunked + "\r\nzz\r\n", 400},
      {chunked + "\r\n\r\nx\r\n", 400},
      {chunked + "\r\n1\nx\r\n0\r\n\r\n", 400},
      {chunked + "\r\n1 1\r\nx\r\n", 400},
      {chunked + "\r\n1\r\nxy\r\n0\r\n\r\n", 400},
      {chunked + "\r\n10000000000000000\r\nx", 400},
      {chunked + "\r\n0\r\nbad trailer\r\n\r\n", 400},
      {chunked + "\r\n0\r\nContent-Length: 5\r\n\r\n", 400},
      {chunked + "\r\n1;" + std::string(40'000, 'e'), 400},
      {line + "Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx", 415},
      {line + "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 415},
      {line + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope", 400},
      {line + "Expect: 200-maybe\r\nContent-Length: 1\r\n\r\nx", 417},
  };
  for (const auto& [text, status] : cases) EXPECT_EQ(parse(text, 0), status) << text.substr(0, 200);
}

TEST(RequestParser, LimitsOfTheHeader) {
  HttpSettings settings;
  settings.max_header_bytes = 32 << 10;
  const std::string start = "GET / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(parse(start + "X: " + std::string(30'000, 'x') + "\r\n\r\n", 100, nullptr, nullptr, settings), 200);
  EXPECT_EQ(parse(start + "X: " + std::string(40'000, 'x') + "\r\n\r\n", 100, nullptr, nullptr, settings), 431);
  EXPECT_EQ(parse(start + "X: " + std::string(40'000, 'x'), 100, nullptr, nullptr, settings), 431) << "without its end";
  std::string many = start;
  for (int i = 0; i < 1100; ++i) many += "A: b\r\n";
  EXPECT_EQ(parse(many + "\r\n", 100, nullptr, nullptr, settings), 431);
  EXPECT_EQ(parse("GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n", 100), 414);
  EXPECT_EQ(parse("GET /" + std::string(20'000, 'x'), 100), 414) << "without its end";
}

TEST(RequestParser, RandomBytesNeverComplete) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = static_cast<char>(random());
    const int status = parse(text, random() % text.size());
    EXPECT_TRUE(status == 0 || status == 200 || (status >= 400 && status <= 505)) << text;
  }
}

}  // namespace
}  // namespace vedette::server::transport
