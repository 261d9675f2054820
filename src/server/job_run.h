// One job on its way: prompts built, choices submitted to the engine, their events split into message parts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/executor.h"
#include "server/job.h"
#include "server/served_model.h"

namespace vedette::server {

struct JobListener {
  std::function<void(const JobEvent&)> event;
  std::function<void(const JobAnswer&)> done;  // exactly one of done and failed is called, once, last
  std::function<void(const Error&)> failed;
};

// Thread-safe. Lives as long as someone holds it or the engine still has its sequences; dropping the last outside
// reference does not cancel.
class JobRun : public std::enable_shared_from_this<JobRun> {
 public:
  // Builds the prompts, compiles constraints, and submits every choice: all or none. Nothing is delivered before
  // listen(). Errors name the request's field.
  static Result<std::shared_ptr<JobRun>> start(std::shared_ptr<ServedModel> model, GenerateJob job, std::string scope,
                                               Executor& executor);

  const JobStart& info() const;
  const ServedModel& model() const;
  // Events come in order, one at a time, on the executor's threads.
  void listen(JobListener listener);
  // The listener still hears `failed` (kCancelled).
  void cancel();
  // Ends it with what came until then: the listener hears `done`.
  void stop();
  // Cancels and reports `error` (a watchdog's, say) in place of kCancelled.
  void fail(Error error);
  // Closes the reasoning of every choice that still reasons; false where the job was not made for it or cannot reason.
  bool end_reasoning();
  void pause();
  void resume();
  // Milliseconds since the last sign of progress.
  int64_t idle_ms() const;
  bool finished() const;

  struct State;
  explicit JobRun(std::unique_ptr<State> state);
  ~JobRun();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace vedette::server
