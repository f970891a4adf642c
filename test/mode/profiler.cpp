// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/mode/profiler_mode.hpp>
#include <varve/varve.hpp>

#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// Reads JSON, and notes the members of the objects in the outermost list; throws at what is no JSON.
class json_reader {
public:
  using object = std::vector<std::pair<std::string, std::string>>;
  std::vector<object> events;
  explicit json_reader(std::string text) : text_(std::move(text)) {
    expect('[');
    if (peek() != ']') do
        events.push_back(read_object());
      while (accept(','));
    expect(']');
    peek();
    if (at_ != text_.size()) throw std::runtime_error("text after the end");
  }

private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) { return peek() == c ? (++at_, true) : false; }
  void expect(char c) {
    if (!accept(c)) throw std::runtime_error(std::string("expected ") + c + " at " + std::to_string(at_));
  }
  std::string read_string() {
    expect('"');
    std::string r;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) throw std::runtime_error("control character");
      if (text_[at_] == '\\') {
        ++at_;
        if (text_.at(at_) == 'u') at_ += 4;
      }
      r += text_.at(at_);
    }
    expect('"');
    return r;
  }
  std::string read_value() {
    std::size_t const from = (peek(), at_);
    if (peek() == '{') read_object();
    else if (peek() == '"') return read_string();
    else {
      while (at_ < text_.size() &&
             (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' || text_[at_] == '-'))
        ++at_;
      std::string const v = text_.substr(from, at_ - from);
      if (v != "true" && v != "false") (void)std::stod(v);
    }
    return text_.substr(from, at_ - from);
  }
  object read_object() {
    object o;
    expect('{');
    if (accept('}')) return o;
    do {
      std::string const key = read_string();
      expect(':');
      o.emplace_back(key, read_value());
    } while (accept(','));
    expect('}');
    return o;
  }
  std::string text_;
  std::size_t at_ = 0;
};
std::string member(json_reader::object const& o, char const* key) {
  for (auto const& [k, v] : o)
    if (k == key) return v;
  return "";
}
double start(json_reader::object const& o) { return std::stod(member(o, "ts")); }
double end(json_reader::object const& o) { return start(o) + std::stod(member(o, "dur")); }
/// ctest runs the cases as processes side by side: each writes a file of its own.
std::string const file = "profiler_test_" + std::to_string(::getpid()) + ".json";
std::vector<json_reader::object> read() {
  std::ifstream in(file);
  std::stringstream s;
  s << in.rdbuf();
  std::remove(file.c_str());
  return json_reader(s.str()).events;
}
json_reader::object named(std::vector<json_reader::object> const& all, std::string const& name) {
  for (auto const& o : all)
    if (member(o, "name") == name) return o;
  return {};
}
bool within(json_reader::object const& a, json_reader::object const& b) {
  return member(a, "tid") == member(b, "tid") && start(a) >= start(b) && end(a) <= end(b) + 1e-3;
}
} // namespace

TEST_CASE("profiler: a trace of complete events, spans and operators nested", "[mode][profiler]") {
  tensor const x = from({1, 2, 3, 4}, {2, 2});
  {
    vv::profiler_mode p(file.c_str(), {true, true});
    vv::mode_guard const on{p};
    auto const outer = p.record_function("a \"step\"\n");
    {
      auto inner = p.record_function("forward");
      inner.note("batch", 2);
      (void)vv::mm(x, x);
    }
    (void)vv::exp(x);
  }
  auto const events = read();
  REQUIRE(events.size() == 4);
  for (auto const& e : events) {
    CHECK(member(e, "ph") == "X");
    CHECK(member(e, "pid") == "1");
  }
  CHECK(within(named(events, "mm"), named(events, "forward")));
  CHECK(within(named(events, "forward"), named(events, "a \"stepn")) ==
        false); // the reader keeps the letter of an escape
  CHECK(within(named(events, "forward"), events.back()));
  CHECK(start(named(events, "exp")) >= end(named(events, "forward")) - 1e-3);
  CHECK_THAT(member(named(events, "mm"), "args"),
             ContainsText("f64[2, 2] = mm(f64[2, 2], f64[2, 2], transposed=[0, 0])") && ContainsText("\"flops\":16"));
  CHECK_THAT(member(named(events, "forward"), "args"), ContainsText("\"batch\":2"));
}

TEST_CASE("profiler: threads have their own rows, one mode collects them", "[mode][profiler][tls]") {
  {
    vv::profiler_mode p(file.c_str());
    std::vector<std::thread> all;
    for (int k = 0; k < 4; ++k)
      all.emplace_back([&] {
        vv::mode_guard const on{p};
        tensor const x = vv::ones({4});
        for (int i = 0; i < 50; ++i) {
          auto const s = p.record_function("round");
          (void)vv::vmap(vv::grad([](auto const& v) { return v * v; }))(x);
        }
      });
    for (auto& t : all) t.join();
    for (auto const& r : p.key_averages()) {
      CHECK(r.calls >= 4);
      CHECK(r.self_us <= r.total_us + 1e-6);
    }
  }
  auto const events = read();
  std::vector<std::string> threads;
  int rounds = 0;
  for (auto const& e : events) {
    rounds += member(e, "name") == "round";
    if (std::find(threads.begin(), threads.end(), member(e, "tid")) == threads.end())
      threads.push_back(member(e, "tid"));
  }
  CHECK(rounds == 200);
  CHECK(threads.size() == 4);
}

TEST_CASE("profiler: the file is whole when the program throws, and says where", "[mode][profiler][exception]") {
  tensor const x = from({1, 2}, {2}), y = from({1, 2, 3}, {3});
  try {
    vv::profiler_mode p(file.c_str());
    vv::mode_guard const on{p};
    auto const s = p.record_function("step");
    (void)(x + x);
    (void)vv::grad([&](auto const& v) { return vv::sum(v * y); })(x);
  } catch (vv::shape_error const&) {}
  CHECK(vv::this_thread_state.quiet());
  auto const events = read();
  REQUIRE(events.size() == 3);
  CHECK(member(named(events, "mul"), "args") == "{\"threw\":true}");
  CHECK(member(named(events, "step"), "args") == "{\"threw\":true}");
  CHECK(member(named(events, "add"), "args") == "");
  { vv::profiler_mode const empty(file.c_str()); }
  CHECK(read().empty());
  CHECK_THROWS_AS(vv::profiler_mode("/no/such/folder/trace.json"), vv::value_error);
}

TEST_CASE("profiler: composites around their parts, static values, a table", "[mode][profiler]") {
  tensor const x = from({1, 2}, {2});
  vv::array<double, 3> const a{1, 2, 3};
  {
    vv::profiler_mode p(file.c_str());
    {
      vv::function_mode_guard const composites{p};
      vv::mode_guard const on{p};
      (void)vv::softmax(x, 0);
      (void)vv::cond(
          vv::gt(vv::sum(x), 0), [](auto const& v) { return vv::sin(v); }, [](auto const& v) { return vv::cos(v); }, x);
    }
    (void)vv::with(p, [](auto const& v) { return vv::tanh(v); }, a);
    CHECK_THAT(p.key_averages_table(), ContainsText("softmax") && ContainsText("tanh") && ContainsText("self us"));
  }
  auto const events = read();
  bool seen = false;
  for (auto const& e : events)
    if (member(e, "name") == "exp") seen = seen || within(e, named(events, "softmax"));
  CHECK(seen);
  CHECK(within(named(events, "sin"), named(events, "cond")));
  CHECK(member(named(events, "tanh"), "ph") == "X");
}
