#include "text/gbnf.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace vedette::text {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int kMaxDepth = 64;
constexpr size_t kMaxRules = 5000;
constexpr uint32_t kMaxRepeat = 10000;
constexpr uint32_t kMaxCodePoint = 0x10ffff;

enum class NodeKind : uint8_t { kLiteral, kClass, kRule, kToken, kSequence, kChoice, kRepeat };

struct Node {
  NodeKind kind = NodeKind::kSequence;
  std::string text;                 // kLiteral: UTF-8; kClass: a regular expression; kToken: as written
  size_t rule = 0;                  // kRule
  uint32_t min = 0;                 // kRepeat
  std::optional<uint32_t> max;      // kRepeat; absent: no limit
  std::vector<Node> children = {};  // kSequence, kChoice, kRepeat
};

struct Rule {
  std::string name;
  size_t used_at = 0;  // offset of the first mention
  bool defined = false;
  Node body = {};
};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool is_surrogate(uint32_t code) {
  return code >= 0xd800 && code <= 0xdfff;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  } else if (code < 0x10000) {
    out += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
            static_cast<char>(0x80 | (code & 0x3f))};
  } else {
    out += {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3f)),
            static_cast<char>(0x80 | (code >> 6 & 0x3f)), static_cast<char>(0x80 | (code & 0x3f))};
  }
}

// ---- Reading ------------------------------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<std::vector<Rule>> read() {
    skip(true);
    while (at_ < text_.size()) {
      VEDETTE_RETURN_IF_ERROR(read_rule());
      skip(true);
    }
    for (const Rule& rule : rules_)
      if (!rule.defined) return error_at(rule.used_at, fmt::format("rule '{}' is not defined", rule.name));
    return std::move(rules_);
  }

 private:
  Error error_at(size_t at, const std::string& what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const size_t start = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    const size_t column = start == std::string_view::npos ? at + 1 : at - start;
    return invalid_request("", "grammar line {}, column {}: {}", line, column, what);
  }
  Error expected(const std::string& what) const {
    if (at_ >= text_.size()) return error_at(at_, fmt::format("expected {}, found the end", what));
    const std::string_view rest = text_.substr(at_, 12);
    const std::string found(rest.substr(0, complete_utf8_prefix(rest)));
    return error_at(at_, fmt::format("expected {}, found '{}'", what, without_controls(found, LineBreaks::kSpaces)));
  }

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        break;
      }
    }
  }

  std::string_view name() {
    const size_t start = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }
  size_t rule_index(std::string_view name, size_t at) {
    const auto [entry, added] = names_.try_emplace(std::string(name), rules_.size());
    if (added) rules_.push_back({std::string(name), at});
    return entry->second;
  }

  Status read_rule() {
    const size_t start = at_;
    const std::string_view called = name();
    if (called.empty()) return expected("the name of a rule");
    skip(false);
    if (!take("::=")) return expected("'::='");
    const size_t index = rule_index(called, start);
    if (rules_[index].defined) return error_at(start, fmt::format("rule '{}' is defined twice", called));
    if (rules_.size() > kMaxRules) return error_at(start, fmt::format("more than {} rules", kMaxRules));
    rules_[index].defined = true;
    skip(true);
    VEDETTE_ASSIGN_OR_RETURN(Node body, choice(false, 0));
    rules_[index].body = std::move(body);
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') return expected("a line break");
    return ok_status();
  }

  // Inside a group line breaks are spaces; a rule goes on over one where '|' begins the next line.
  Result<Node> choice(bool nested, int depth) {
    if (depth > kMaxDepth) return error_at(at_, fmt::format("groups are nested deeper than {}", kMaxDepth));
    Node node{.kind = NodeKind::kChoice};
    while (true) {
      VEDETTE_ASSIGN_OR_RETURN(Node part, sequence(nested, depth));
      node.children.push_back(std::move(part));
      const size_t end = at_;
      skip(true);
      if (!take("|")) {
        if (!nested) at_ = end;
        break;
      }
      skip(true);
    }
    if (node.children.size() == 1) return std::move(node.children.front());
    return node;
  }

  Result<Node> sequence(bool nested, int depth) {
    Node node;
    while (true) {
      skip(nested);
      std::optional<Node> item;
      const char c = peek();
      if (c == '"') {
        VEDETTE_ASSIGN_OR_RETURN(item, literal());
      } else if (c == '[') {
        VEDETTE_ASSIGN_OR_RETURN(item, character_class());
      } else if (c == '(') {
        ++at_;
        VEDETTE_ASSIGN_OR_RETURN(item, choice(true, depth + 1));
        if (!take(")")) return expected("')'");
      } else if (c == '<') {
        VEDETTE_ASSIGN_OR_RETURN(item, token());
      } else if (c == '.') {
        ++at_;
        item = Node{.kind = NodeKind::kClass, .text = R"([\u{0}-\u{10ffff}])"};
      } else if (is_name(c)) {
        const size_t start = at_;
        const size_t index = rule_index(name(), start);
        item = Node{.kind = NodeKind::kRule, .text = {}, .rule = index};
      } else if (c == '!') {
        return error_at(at_, "negated token references are not supported");
      } else {
        return node;
      }
      VEDETTE_ASSIGN_OR_RETURN(Node repeated, repetition(std::move(*item)));
      node.children.push_back(std::move(repeated));
    }
  }

  Result<Node> repetition(Node item) {
    for (int times = 0;; ++times) {
      skip(false);
      Node node{.kind = NodeKind::kRepeat};
      if (take("*")) {
        node.min = 0;
      } else if (take("+")) {
        node.min = 1;
      } else if (take("?")) {
        node.max = 1;
      } else if (peek() == '{') {
        VEDETTE_RETURN_IF_ERROR(counts(node));
      } else {
        return item;
      }
      if (times == kMaxDepth) return error_at(at_, fmt::format("more than {} repetitions of one item", kMaxDepth));
      node.children.push_back(std::move(item));
      item = std::move(node);
    }
  }

  Status counts(Node& node) {
    const size_t start = at_++;
    skip(false);
    const bool open_start = peek() == ',';
    if (!open_start) {
      VEDETTE_ASSIGN_OR_RETURN(node.min, number());
    }
    node.max = node.min;
    skip(false);
    if (take(",")) {
      skip(false);
      node.max.reset();
      if (peek() != '}') {
        VEDETTE_ASSIGN_OR_RETURN(node.max, number());
      } else if (open_start) {
        return expected("a number");
      }
      skip(false);
    }
    if (!take("}")) return expected("'}'");
    if (node.max && *node.max < node.min) return error_at(start, "the repetition's range is empty");
    return ok_status();
  }

  Result<uint32_t> number() {
    const size_t start = at_;
    uint32_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = std::min(value * 10 + static_cast<uint32_t>(peek() - '0'), kMaxRepeat + 1);
      ++at_;
    }
    if (at_ == start) return expected("a number");
    if (value > kMaxRepeat) return error_at(start, fmt::format("repetitions above {} are not supported", kMaxRepeat));
    return value;
  }

  Result<Node> literal() {
    const size_t start = at_++;
    Node node{.kind = NodeKind::kLiteral};
    while (peek() != '"') {
      if (at_ >= text_.size() || peek() == '\n') return error_at(start, "the string is not closed");
      VEDETTE_ASSIGN_OR_RETURN(const uint32_t code, character());
      append_utf8(node.text, code);
    }
    ++at_;
    return node;
  }

  Result<Node> character_class() {
    const size_t start = at_++;
    Node node{.kind = NodeKind::kClass};
    node.text = take("^") ? "[^" : "[";
    size_t count = 0;
    for (; peek() != ']'; ++count) {
      if (at_ >= text_.size() || peek() == '\n') return error_at(start, "the character class is not closed");
      const size_t from = at_;
      VEDETTE_ASSIGN_OR_RETURN(const uint32_t first, character());
      uint32_t last = first;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (at_ >= text_.size()) return error_at(start, "the character class is not closed");
        VEDETTE_ASSIGN_OR_RETURN(last, character());
      }
      if (last < first) return error_at(from, "the range of characters is empty");
      node.text += fmt::format("\\u{{{:x}}}-\\u{{{:x}}}", first, last);
    }
    if (count == 0) return error_at(start, "the character class is empty");
    ++at_;
    node.text += ']';
    return node;
  }

  Result<Node> token() {
    const size_t start = at_;
    const size_t end = text_.find_first_of("> \t\r\n", at_);
    if (end == std::string_view::npos || text_[end] != '>' || end == start + 1)
      return error_at(start, "the token reference is not closed");
    at_ = end + 1;
    return Node{.kind = NodeKind::kToken, .text = std::string(text_.substr(start, at_ - start))};
  }

  // One character of a string or class, escapes resolved. The text is valid UTF-8.
  Result<uint32_t> character() {
    const size_t start = at_;
    const auto lead = static_cast<unsigned char>(text_[at_++]);
    if (lead == '\\') return escape(start);
    if (lead < 0x80) return uint32_t{lead};
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    uint32_t code = lead & (0x3fu >> more);
    for (int i = 0; i < more; ++i) code = code << 6 | (static_cast<unsigned char>(text_[at_++]) & 0x3f);
    return code;
  }

  Result<uint32_t> escape(size_t start) {
    const char kind = peek();
    if (at_ < text_.size()) ++at_;
    switch (kind) {
      case 'x':
        return hex(start, 2);
      case 'u':
        return hex(start, 4);
      case 'U':
        return hex(start, 8);
      case 'n':
        return uint32_t{'\n'};
      case 'r':
        return uint32_t{'\r'};
      case 't':
        return uint32_t{'\t'};
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
      case '/':
        return static_cast<uint32_t>(kind);
      default:
        return error_at(start, "unknown escape; known are \\x \\u \\U \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\/");
    }
  }

  Result<uint32_t> hex(size_t start, int digits) {
    uint32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int value = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (value < 0) return expected(fmt::format("{} hexadecimal digits", digits));
      code = code << 4 | static_cast<uint32_t>(value);
    }
    if (code > kMaxCodePoint || is_surrogate(code)) return error_at(start, "no such character");
    return code;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Rule> rules_;
  std::map<std::string, size_t, std::less<>> names_;
};

// ---- Writing ------------------------------------------------------------------------------------------------------

// A rule is regular if it leads neither to itself or another rule that does, nor to a token reference.
class Writer {
 public:
  explicit Writer(const std::vector<Rule>& rules) : rules_(rules) { find_regular(); }

  std::string write(size_t root) {
    out_ = fmt::format("start: {}\n", reference(root));
    for (size_t i = 0; i < rules_.size(); ++i) {
      const std::string body = regular_[i] ? terminal(rules_[i].body) : rule(rules_[i].body);
      out_ += fmt::format("{}: {}\n", reference(i), body);
    }
    return std::move(out_);
  }

 private:
  void find_regular() {
    regular_.assign(rules_.size(), false);
    std::vector<size_t> waiting_for(rules_.size(), 0);
    std::vector<std::vector<size_t>> used_by(rules_.size());
    std::vector<size_t> ready;
    for (size_t i = 0; i < rules_.size(); ++i) {
      bool has_token = false;
      count_references(rules_[i].body, i, used_by, waiting_for[i], has_token);
      if (has_token) ++waiting_for[i];  // for ever
      if (waiting_for[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const size_t done = ready.back();
      ready.pop_back();
      regular_[done] = true;
      for (const size_t user : used_by[done])
        if (--waiting_for[user] == 0) ready.push_back(user);
    }
  }

  static void count_references(const Node& node, size_t user, std::vector<std::vector<size_t>>& used_by, size_t& count,
                               bool& has_token) {
    has_token |= node.kind == NodeKind::kToken;
    if (node.kind == NodeKind::kRule) {
      used_by[node.rule].push_back(user);
      ++count;
    }
    for (const Node& child : node.children) count_references(child, user, used_by, count, has_token);
  }

  bool is_regular(const Node& node) const {
    if (node.kind == NodeKind::kToken) return false;
    if (node.kind == NodeKind::kRule) return regular_[node.rule];
    return std::all_of(node.children.begin(), node.children.end(), [this](const Node& n) { return is_regular(n); });
  }

  // Lark tells terminals from rules by their case.
  std::string reference(size_t index) const {
    std::string name = fmt::format("{}{}", regular_[index] ? 'T' : 'r', index);
    for (const char c : "-" + rules_[index].name)
      name += regular_[index] ? static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c)
                              : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return name;
  }

  static std::string counts(const Node& node) {
    if (node.min == 0 && !node.max) return "*";
    if (node.min == 1 && !node.max) return "+";
    if (node.min == 0 && node.max == 1u) return "?";
    return node.max ? fmt::format("{{{},{}}}", node.min, *node.max) : fmt::format("{{{},}}", node.min);
  }

  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        out += {'\\', c};
      } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        out += fmt::format("\\u{:04x}", static_cast<int>(c));
      } else {
        out += c;
      }
    }
    return out + '"';
  }

  // `part` writes one child.
  template <typename Part>
  static std::string joined(const std::vector<Node>& children, std::string_view separator, Part part) {
    std::string out = "(";
    for (const Node& child : children) {
      if (out.size() > 1) out += separator;
      out += part(child);
    }
    return out + ')';
  }

  std::string terminal(const Node& node) const {
    const auto part = [this](const Node& child) { return terminal(child); };
    switch (node.kind) {
      case NodeKind::kLiteral:
        return quoted(node.text);
      case NodeKind::kClass:
        return '/' + node.text + '/';
      case NodeKind::kRule:
        return reference(node.rule);
      case NodeKind::kToken:
        return node.text;
      case NodeKind::kSequence:
        return node.children.empty() ? "\"\"" : joined(node.children, " ", part);
      case NodeKind::kChoice:
        return joined(node.children, " | ", part);
      case NodeKind::kRepeat:
        if (node.max == 0u) return "\"\"";
        return '(' + terminal(node.children.front()) + ')' + counts(node);
    }
    return {};
  }

  // Regular items side by side become one terminal, because the lexer takes the longest match of each terminal.
  std::string rule(const Node& node) {
    if (is_regular(node)) return as_terminal(node);
    switch (node.kind) {
      case NodeKind::kSequence: {
        std::string out = "(";
        for (size_t i = 0; i < node.children.size();) {
          Node run;
          while (i < node.children.size() && is_regular(node.children[i])) run.children.push_back(node.children[i++]);
          if (out.size() > 1) out += ' ';
          out += run.children.empty() ? rule(node.children[i++]) : as_terminal(run);
        }
        return out + ')';
      }
      case NodeKind::kChoice:
        return joined(node.children, " | ", [this](const Node& child) { return rule(child); });
      case NodeKind::kRepeat:
        if (node.max == 0u) return "\"\"";
        return '(' + rule(node.children.front()) + ')' + counts(node);
      case NodeKind::kRule:
        return reference(node.rule);
      default:
        return node.text;  // a token reference
    }
  }

  std::string as_terminal(const Node& node) {
    const Node& inner = node.kind == NodeKind::kSequence && node.children.size() == 1 ? node.children.front() : node;
    if (inner.kind == NodeKind::kRule || inner.kind == NodeKind::kLiteral) return terminal(inner);
    const std::string name = fmt::format("X{}", extra_++);
    out_ += fmt::format("{}: {}\n", name, terminal(node));
    return name;
  }

  const std::vector<Rule>& rules_;
  std::vector<char> regular_;
  std::string out_;
  size_t extra_ = 0;
};

}  // namespace

Result<std::string> lark_from_gbnf(std::string_view grammar) {
  if (grammar.size() > kMaxBytes)
    return invalid_request("", "grammar of {} bytes: at most {}", grammar.size(), kMaxBytes);
  if (!is_valid_utf8(grammar)) return invalid_request("", "grammar: expected UTF-8 text");
  VEDETTE_ASSIGN_OR_RETURN(const std::vector<Rule> rules, Reader(grammar).read());
  const auto root = std::find_if(rules.begin(), rules.end(), [](const Rule& rule) { return rule.name == "root"; });
  if (root == rules.end()) return invalid_request("", "grammar: expected a rule named 'root', found none");
  return Writer(rules).write(static_cast<size_t>(root - rules.begin()));
}

}  // namespace vedette::text
