// Property tests: cases from rapidcheck's generators, a failure told to GoogleTest with the smallest case found and the
// RC_PARAMS that repeat it. Each run of a program draws another seed and prints it; RC_PARAMS="seed=..." fixes it.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace vedette::test {

// Any of [least, most], evenly, whatever rapidcheck's size is; shrinks towards `simplest`.
template <typename T>
rc::Gen<T> between(T least, T most, T simplest) {
  return [=](const rc::Random& random, int) {
    const auto count = static_cast<uint64_t>(most - least) + 1;
    const auto value = static_cast<T>(least + static_cast<T>(rc::Random(random).next() % count));
    return rc::shrinkable::shrinkRecur(value, [=](T x) { return rc::shrink::towards(x, simplest); });
  };
}
template <typename T>
rc::Gen<T> between(T least, T most) {
  return between(least, most, least);
}

// 64 random bits, of which none is simpler than another.
inline rc::Gen<uint64_t> bits() {
  return [](const rc::Random& random, int) { return rc::shrinkable::just(uint64_t{rc::Random(random).next()}); };
}

// A list of `length` elements; a shorter list is simpler, the elements keep their values.
template <typename T>
rc::Gen<std::vector<T>> list_of(rc::Gen<size_t> length, rc::Gen<T> element) {
  return rc::gen::mapcat(std::move(length), [element = std::move(element)](size_t n) {
    return rc::gen::noShrink(rc::gen::container<std::vector<T>>(n, element));
  });
}

// least to most token ids below vocab_size; shrinks to fewer.
inline rc::Gen<std::vector<int32_t>> token_ids(size_t least, size_t most, int64_t vocab_size) {
  return list_of(between<size_t>(least, most, 1), between<int32_t>(0, static_cast<int32_t>(vocab_size - 1)));
}

// A failed expectation of a property.
inline void require(const ::testing::AssertionResult& result, const std::string& where = {}) {
  if (!result) RC_FAIL(where.empty() ? std::string(result.message()) : where + ": " + result.message());
}

// Runs property() on `cases` cases, which it draws by *generator; `label` tells several properties of one test apart.
// RC_PARAMS has the last word (max_success for the number of cases). A case may cost a second, so that shrinking ends
// after kMostShrinks more of them.
inline constexpr int kMostShrinks = 15;
template <typename Property>
void check_property(const std::string& label, int cases, Property&& property) {
  namespace detail = rc::detail;
  const detail::Configuration& configuration = detail::configuration();
  detail::TestParams params = configuration.testParams;
  if (params.maxSuccess == detail::TestParams{}.maxSuccess) params.maxSuccess = cases;
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string(info->test_suite_name()) + "." + info->name() + " " + label;
  params.seed ^= std::hash<std::string>{}(name);  // or all properties see the same cases
  const detail::TestMetadata metadata{name, name};
  detail::TestListenerAdapter quiet;
  int shrinks = -1;  // nothing has failed
  const auto bounded = [&] {
    if (shrinks >= kMostShrinks) return;
    if (shrinks >= 0) ++shrinks;
    try {
      property();
    } catch (...) {
      shrinks = std::max(shrinks, 0);
      throw;
    }
  };
  auto result = detail::checkTestable(bounded, metadata, params, quiet, configuration.reproduce);
  if (result.template is<detail::SuccessResult>()) return;
  std::ostringstream message;
  if (result.template is<detail::FailureResult>()) {
    detail::Configuration again;
    again.reproduce.emplace(name, result.template get<detail::FailureResult>().reproduce);
    message << "RC_PARAMS=\"" << detail::configToMinimalString(again) << "\" runs this case alone.\n";
    // The smallest case once more, in full.
    result = detail::checkTestable(property, metadata, params, quiet, again.reproduce);
  }
  message << label << ": ";
  detail::printResultMessage(result, message);
  ADD_FAILURE() << message.str();
}

}  // namespace vedette::test
