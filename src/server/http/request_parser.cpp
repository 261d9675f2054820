#include "server/http/request_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>
#include <cctype>

#include "server/http/body_decoder.h"
#include "server/http/target.h"

namespace vedette::server::transport {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;

constexpr size_t kMostTarget = size_t{16} << 10;
constexpr size_t kMostFields = 1000;
// A chunk's size line or a trailer; also what arrives of a body at once.
constexpr size_t kMostLine = size_t{16} << 10;

// Requests that wait behind an answer are read up to here, because the end of the connection lies behind them.
constexpr size_t kReadAhead = size_t{1} << 20;

// Where Beast's parser puts the bytes of a body.
struct BodySink {
  std::unique_ptr<BodyDecoder> decoder;
  std::optional<Problem> problem;
  size_t limit = 0, received = 0;  // compressed bytes
};

struct DecodedBody {
  using value_type = BodySink*;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields>&, value_type& sink) : sink_(sink) {}
    void init(const boost::optional<uint64_t>&, error_code& error) { error = {}; }

    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& error) {
      size_t total = 0;
      for (auto it = boost::asio::buffer_sequence_begin(buffers); it != boost::asio::buffer_sequence_end(buffers);
           ++it) {
        const boost::asio::const_buffer buffer(*it);
        total += buffer.size();
        sink_->received += buffer.size();
        // Blocks that decompress to nothing must not go on for ever either.
        if (sink_->received > sink_->limit) sink_->problem = body_too_large(sink_->limit);
        if (!sink_->problem)
          sink_->problem = sink_->decoder->feed({static_cast<const char*>(buffer.data()), buffer.size()});
        if (sink_->problem) break;
      }
      error = sink_->problem ? error_code(http::error::bad_value) : error_code();
      return total;
    }

    void finish(error_code& error) { error = {}; }

   private:
    BodySink*& sink_;
  };
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

// "METHOD target HTTP/2.0", as opposed to a line of another shape.
bool names_other_version(std::string_view line) {
  const size_t last = line.rfind(' ');
  return std::count(line.begin(), line.end(), ' ') == 2 && line.substr(last + 1).starts_with("HTTP/");
}

// What Beast is lenient about. `header` ends with its empty line.
std::optional<Problem> check_lines(std::string_view header) {
  for (size_t i = 0; i < header.size(); ++i) {
    const char c = header[i];
    if (c == '\0') return Problem{400, "malformed request: a NUL byte in the header"};
    if (c == '\r' && header[i + 1] != '\n') return Problem{400, "malformed request: a CR without LF in the header"};
    if (c != '\n') continue;
    if (i == 0 || header[i - 1] != '\r') return Problem{400, "malformed request: header lines end with CR LF"};
    if (i + 1 < header.size() && (header[i + 1] == ' ' || header[i + 1] == '\t'))
      return Problem{400, "malformed request: folded header fields are not accepted; put each field on one line"};
  }
  return {};
}

}  // namespace

struct RequestParser::Impl {
  explicit Impl(const HttpSettings& from) : settings(from) {
    sink.limit = settings.max_body_bytes;
    parser.header_limit(static_cast<uint32_t>(settings.max_header_bytes) + 16);
    parser.body_limit(boost::none);
    parser.get().body() = &sink;
  }

  Step fail(int status, std::string message) {
    problem = {status, std::move(message)};
    return Step::kProblem;
  }

  Step feed_header(std::string_view input, size_t& consumed);
  Step feed_body(std::string_view input, size_t& consumed);
  std::optional<Problem> accept_header();
  std::optional<Problem> check_framing();
  std::optional<Problem> accept_target();
  Step complete();

  const HttpSettings& settings;
  BodySink sink;
  http::request_parser<DecodedBody> parser;
  size_t scanned = 0;  // no end of the header before this
  bool started = false, has_header = false, expects_continue = false;
  HttpRequest request;
  Problem problem;
};

RequestParser::Step RequestParser::Impl::feed_header(std::string_view input, size_t& consumed) {
  // An empty line before a request is tolerated, as RFC 9112 asks.
  if (scanned == 0) {
    while (input.substr(consumed).starts_with("\r\n")) consumed += 2;
    input.remove_prefix(consumed);
    if (input == "\r") return Step::kNeedMore;
  }
  started = started || !input.empty();
  const size_t end = input.find("\r\n\r\n", scanned);
  const size_t size = end == std::string_view::npos ? input.size() : end + 4;
  const size_t line = std::min(input.find('\n'), size);
  const size_t target_limit = std::min(kMostTarget, settings.max_header_bytes);
  if (line > target_limit)
    return fail(414, fmt::format("the request target is too long: at most {} bytes are accepted", target_limit));
  if (size > settings.max_header_bytes)
    return fail(
        431, fmt::format("the request header is too large: at most {} bytes are accepted", settings.max_header_bytes));
  if (end == std::string_view::npos) {
    // A line that ends with LF alone would wait for ever.
    const size_t bare = input.find('\n', scanned);
    if (bare != std::string_view::npos && (bare == 0 || input[bare - 1] != '\r'))
      return fail(400, "malformed request: header lines end with CR LF");
    scanned = input.size() > 3 ? input.size() - 3 : 0;
    return Step::kNeedMore;
  }
  if (auto found = check_lines(input.substr(0, size))) return fail(found->status, found->message);
  error_code error;
  parser.put(boost::asio::const_buffer(input.data(), size), error);
  if (error == http::error::bad_version && names_other_version(input.substr(0, line)))
    return fail(505, "HTTP version not supported: this server speaks HTTP/1.1 and HTTP/1.0");
  if (error || !parser.is_header_done())
    return fail(400, fmt::format("malformed request: {}", error ? error.message() : "the header is incomplete"));
  consumed += size;
  if (auto found = accept_header()) return fail(found->status, found->message);
  has_header = true;
  if (parser.is_done()) return complete();
  parser.eager(true);
  return Step::kNeedMore;
}

std::optional<Problem> RequestParser::Impl::check_framing() {
  const auto& message = parser.get();
  size_t hosts = 0, lengths = 0, codings = 0, encodings = 0;
  for (const auto& [name, value] : request.headers) {
    hosts += name == "host" ? 1 : 0;
    lengths += name == "content-length" ? 1 : 0;
    codings += name == "transfer-encoding" ? 1 : 0;
    encodings += name == "content-encoding" ? 1 : 0;
  }
  if (lengths + codings > 1)
    return Problem{400, "malformed request: exactly one of Content-Length and Transfer-Encoding may be given, once"};
  if (lengths == 1) {
    const std::string& value = *request.header("content-length");
    if (value.empty() || !std::all_of(value.begin(), value.end(), [](unsigned char c) { return c >= '0' && c <= '9'; }))
      return Problem{400, "malformed request: Content-Length must be a number"};
  }
  if (codings == 1 && lower(*request.header("transfer-encoding")) != "chunked")
    return Problem{501, "Transfer-Encoding: only 'chunked' is supported"};
  if (codings == 1 && message.version() == 10)
    return Problem{400, "malformed request: HTTP/1.0 has no Transfer-Encoding"};
  if (hosts > 1 || (hosts == 0 && message.version() == 11))
    return Problem{400, fmt::format("malformed request: expected one Host header, found {}", hosts)};
  if (encodings > 1)
    return Problem{415, fmt::format("Content-Encoding: one coding is supported, of {}", kSupportedCodings)};
  return {};
}

std::optional<Problem> RequestParser::Impl::accept_target() {
  if (request.method == "CONNECT") return Problem{400, "CONNECT is not supported: this server is no proxy"};
  if (request.target == "*" && request.method != "OPTIONS")
    return Problem{400, "malformed request: the target '*' belongs to OPTIONS"};
  auto target = parse_target(request.target, settings.api_prefix);
  if (!target.ok()) return Problem{400, target.error().message};
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  request.prefixed = target->prefixed;
  if (target->authority.empty()) return {};
  // The host of an absolute target is the one that counts (RFC 9112, 3.2.2).
  for (auto& [name, value] : request.headers)
    if (name == "host") value = target->authority;
  if (request.header("host") == nullptr) request.headers.emplace_back("host", target->authority);
  return {};
}

std::optional<Problem> RequestParser::Impl::accept_header() {
  const auto& message = parser.get();
  request.method = view(message.method_string());
  request.target = view(message.target());
  for (const auto& field : message) request.headers.emplace_back(lower(view(field.name_string())), view(field.value()));
  if (request.headers.size() > kMostFields)
    return Problem{431, fmt::format("the request has too many header fields: at most {} are accepted", kMostFields)};
  if (auto found = check_framing()) return found;
  if (auto found = accept_target()) return found;
  if (const std::string* expect = request.header("expect"); expect != nullptr && message.version() == 11) {
    if (lower(*expect) != "100-continue") return Problem{417, "Expect: only '100-continue' is supported"};
    expects_continue = !parser.is_done();
  }
  const std::string* encoding = request.header("content-encoding");
  sink.decoder = make_body_decoder(encoding == nullptr ? "" : *encoding, settings.max_body_bytes);
  if (!sink.decoder)
    return Problem{415,
                   fmt::format("Content-Encoding '{}' is not supported; use one of {}", *encoding, kSupportedCodings)};
  if (const auto length = parser.content_length(); length && *length > settings.max_body_bytes)
    return body_too_large(settings.max_body_bytes);
  return {};
}

RequestParser::Step RequestParser::Impl::feed_body(std::string_view input, size_t& consumed) {
  while (consumed < input.size()) {
    const std::string_view rest = input.substr(consumed);
    error_code error;
    const size_t used = parser.put(boost::asio::const_buffer(rest.data(), rest.size()), error);
    consumed += used;
    if (sink.problem) return fail(sink.problem->status, sink.problem->message);
    if (error && error != http::error::need_more)
      return fail(400, fmt::format("malformed request body: {}", error.message()));
    if (parser.is_done()) return complete();
    if (used > 0 && !error) continue;
    if (used == 0 && rest.size() > kMostLine)
      return fail(400, "malformed request body: a chunk header or trailer is too long");
    if (error) return Step::kNeedMore;
  }
  return Step::kNeedMore;
}

RequestParser::Step RequestParser::Impl::complete() {
  if (auto found = sink.decoder->finish()) return fail(found->status, found->message);
  request.body = sink.decoder->take();
  return Step::kComplete;
}

RequestParser::RequestParser(const HttpSettings& settings) : impl_(std::make_unique<Impl>(settings)) {}
RequestParser::~RequestParser() = default;

RequestParser::Step RequestParser::feed(std::string_view input, size_t& consumed) {
  consumed = 0;
  if (!impl_->has_header) {
    const Step step = impl_->feed_header(input, consumed);
    if (step != Step::kNeedMore || !impl_->has_header) return step;
  }
  return impl_->feed_body(input, consumed);
}

bool RequestParser::started() const {
  return impl_->started;
}
bool RequestParser::has_header() const {
  return impl_->has_header;
}
bool RequestParser::expects_continue() const {
  return impl_->expects_continue;
}
const Problem& RequestParser::problem() const {
  return impl_->problem;
}

AnswerForm RequestParser::form() const {
  if (!impl_->has_header) return {.head = impl_->request.method == "HEAD"};
  return {.http_1_0 = impl_->parser.get().version() == 10,
          .head = impl_->request.method == "HEAD",
          .keep_alive = impl_->parser.keep_alive()};
}

HttpRequest RequestParser::take() {
  return std::move(impl_->request);
}

size_t most_input_bytes(const HttpSettings& settings) {
  return std::max(kReadAhead, settings.max_header_bytes + 2 * kMostLine);
}

}  // namespace vedette::server::transport
