// The hub's two requests, with their retries and their errors in plain words.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/download.h"
#include "hub/http_client.h"
#include "hub/repository.h"

namespace vedette::hub {

class HubClient {
 public:
  HubClient(HubSettings settings, std::string repo_id, std::string revision, std::stop_token stop = {});

  // Files are fetched of the commit that the list names.
  Result<Repository> list();
  // The content of a file from `offset` on. sink gets each piece with its place in the file; where the hub sends the
  // whole file in place of the rest, places start at 0 again. Retries go on from what the sink has taken.
  Status fetch(const RepositoryFile& file, int64_t offset,
               const std::function<Status(int64_t place, std::string_view piece)>& sink) const;

 private:
  HttpGet request(std::string url) const;
  void pause(int milliseconds) const;
  Error refused(const HttpReply& reply, const std::string& what) const;
  HubSettings settings_;
  std::string repo_id_, revision_, commit_;
  std::stop_token stop_;
};

}  // namespace vedette::hub
