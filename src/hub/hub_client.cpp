#include "hub/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <optional>
#include <thread>

#include "base/error.h"

namespace vedette::hub {
namespace {

constexpr int kMostTries = 5;
constexpr int kFirstWaitMs = 250;
constexpr int kLongestWaitMs = 30'000;

bool worth_a_retry(int status) {
  return status == 408 || status == 429 || status >= 500;
}

int wait_ms(int attempt, const HttpReply* reply) {
  const int backoff = kFirstWaitMs << attempt;
  const std::string* after = reply != nullptr ? reply->header("retry-after") : nullptr;
  int seconds = 0;
  if (after != nullptr && std::from_chars(after->data(), after->data() + after->size(), seconds).ec == std::errc())
    return std::clamp(seconds * 1000, backoff, kLongestWaitMs);
  return backoff;
}

// Text as part of a URL's path, with or without its slashes.
std::string escaped(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keep_slashes))
      out += static_cast<char>(c);
    else
      out += fmt::format("%{:02X}", c);
  }
  return out;
}

// The first byte of "bytes 5-9/10".
std::optional<int64_t> range_start(const HttpReply& reply) {
  const std::string* range = reply.header("content-range");
  constexpr std::string_view kUnit = "bytes ";
  if (range == nullptr || !range->starts_with(kUnit)) return std::nullopt;
  int64_t start = 0;
  const char* end = range->data() + range->size();
  const auto parsed = std::from_chars(range->data() + kUnit.size(), end, start);
  return parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '-' ? std::optional(start) : std::nullopt;
}

}  // namespace

HubClient::HubClient(HubSettings settings, std::string repo_id, std::string revision, std::stop_token stop)
    : settings_(std::move(settings)),
      repo_id_(std::move(repo_id)),
      revision_(std::move(revision)),
      stop_(std::move(stop)) {
  while (settings_.endpoint.ends_with('/')) settings_.endpoint.pop_back();
}

HttpGet HubClient::request(std::string url) const {
  HttpGet out;
  out.url = std::move(url);
  out.extra_ca_file = settings_.extra_ca_file;
  out.stop = stop_;
  if (!settings_.token.empty()) out.secret_headers = {{"Authorization", "Bearer " + settings_.token}};
  return out;
}

// Between two tries; the next one finds out where it was cut short.
void HubClient::pause(int milliseconds) const {
  constexpr int kSliceMs = 50;
  for (int slept = 0; slept < milliseconds && !stop_.stop_requested(); slept += kSliceMs)
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(kSliceMs, milliseconds - slept)));
}

// An answer that is no success, as what it means and what to do.
Error HubClient::refused(const HttpReply& reply, const std::string& what) const {
  const std::string* code = reply.header("x-error-code");
  const std::string_view reason = code != nullptr ? std::string_view(*code) : "";
  const std::string& hub = settings_.endpoint;
  if (reason == "GatedRepo" || reply.status == 403)
    return invalid_request("--token",
                           "{} is gated (status {}): accept its terms at {}/{}, then give a token of that account with "
                           "HF_TOKEN or --token",
                           repo_id_, reply.status, hub, repo_id_);
  if (reply.status == 401 && settings_.token.empty())
    return invalid_request("--token",
                           "{} has no public model {} (status 401): check the name; for a private or gated model give "
                           "a token with HF_TOKEN or --token",
                           hub, repo_id_);
  if (reply.status == 401)
    return invalid_request("--token", "{} does not accept the token for {} (status 401): check HF_TOKEN or --token",
                           hub, repo_id_);
  if (reason == "RevisionNotFound")
    return not_found("--revision", "{} has no revision {} of {}; leave --revision out for main", hub, revision_,
                     repo_id_);
  if (reply.status == 404)
    return not_found("", "{} has no {} (status 404): check the name and --revision {}", hub, what, revision_);
  return unavailable("", "{} answered status {} for {}; try again later", hub, reply.status, what);
}

Result<Repository> HubClient::list() {
  const std::string url =
      fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings_.endpoint, repo_id_, escaped(revision_, false));
  for (int attempt = 0;; ++attempt) {
    const auto reply = http_get(request(url));
    const bool last = attempt + 1 >= kMostTries;
    if (!reply.ok()) {
      // Where no connection comes about another try seldom helps, and waiting hides why.
      if (last || reply.error().field != "transfer") return reply.error();
      pause(wait_ms(attempt, nullptr));
      continue;
    }
    if (reply->status >= 200 && reply->status < 300) {
      auto repository = parse_repository(repo_id_, reply->body);
      if (repository.ok()) commit_ = repository->commit;
      return repository;
    }
    if (last || !worth_a_retry(reply->status)) return refused(*reply, "model " + repo_id_);
    pause(wait_ms(attempt, &*reply));
  }
}

Status HubClient::fetch(const RepositoryFile& file, int64_t offset,
                        const std::function<Status(int64_t place, std::string_view piece)>& sink) const {
  const std::string url = fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, repo_id_,
                                      escaped(commit_.empty() ? revision_ : commit_, false), escaped(file.path, true));
  int64_t place = offset, furthest = offset;
  int fruitless = 0;  // tries in a row that brought nothing
  while (true) {
    HttpGet get = request(url);
    if (place > 0) get.headers.emplace_back("Range", fmt::format("bytes={}-", place));
    const int64_t asked = place;
    bool begun = false;
    get.sink = [&](const HttpReply& head, std::string_view piece) -> Status {
      if (!begun) {
        begun = true;
        const auto start = head.status == 206 ? range_start(head) : std::optional<int64_t>(0);
        if (!start || (*start != asked && *start != 0))
          return corrupt_file("", "{}: asked for bytes from {} on, the answer has others; try again with --force",
                              file.path, asked);
        place = *start;
      }
      VEDETTE_RETURN_IF_ERROR(sink(place, piece));
      place += static_cast<int64_t>(piece.size());
      return ok_status();
    };
    const auto reply = http_get(get);
    fruitless = place > furthest ? 1 : fruitless + 1;
    furthest = std::max(furthest, place);
    const bool last = fruitless >= kMostTries;
    if (reply.ok()) {
      if (reply->status >= 200 && reply->status < 300) return ok_status();
      // The file is shorter than what is there: the sums decide.
      if (reply->status == 416 && place > 0) return ok_status();
      if (last || !worth_a_retry(reply->status)) return refused(*reply, file.path + " of " + repo_id_);
    } else if (last || reply.error().kind != ErrorKind::kUnavailable || reply.error().field.empty()) {
      return reply.error();
    }
    pause(wait_ms(std::max(0, fruitless - 1), reply.ok() ? &*reply : nullptr));
  }
}

}  // namespace vedette::hub
