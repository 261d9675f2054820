#include "server/model_fetch.h"

#include <gtest/gtest.h>

#include <future>

#include "base/error.h"

namespace vedette::server {
namespace {

// A cancel that came as the last byte did was answered with success, and the model was loaded all the same.
TEST(ModelFetch, ACancelOfADownloadThatJustEndedLoadedTheModel) {
  ModelFetch fetch;
  std::promise<void> begun;
  const Resolver resolve = [&](const std::string&, const hub::DownloadWatch& watch) -> Result<ServedModelOptions> {
    std::promise<void> stopped;
    const std::stop_callback told(watch.stop, [&] { stopped.set_value(); });
    begun.set_value();
    stopped.get_future().wait();
    return ServedModelOptions{};
  };
  auto run = std::async(std::launch::async, [&] { return fetch.run("o/tiny", resolve, {}); });
  begun.get_future().wait();
  EXPECT_TRUE(fetch.cancel(false));
  const auto options = run.get();
  ASSERT_FALSE(options.ok());
  EXPECT_EQ(options.error().kind, ErrorKind::kCancelled);
  EXPECT_FALSE(fetch.view());
  EXPECT_FALSE(fetch.cancel(true));
}

}  // namespace
}  // namespace vedette::server
