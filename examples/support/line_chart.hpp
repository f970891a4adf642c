// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// One curve of a chart: y over x = 0, 1, 2, ...
struct curve {
  std::string name, color;
  std::vector<double> y;
  bool dashed = false;
};

/// Writes curves as an SVG with a logarithmic y axis.
inline void save_line_chart(std::string const& path, std::string const& title, std::string const& x_label,
                            std::string const& y_label, std::vector<curve> const& curves) {
  double const width = 860, height = 460, left = 78, right = 24, top = 54, bottom = 62;
  double low = 1e300, high = 0;
  std::size_t count = 2;
  for (auto const& c : curves) {
    for (double v : c.y) {
      low = std::min(low, v);
      high = std::max(high, v);
    }
    count = std::max(count, c.y.size());
  }
  auto const bound = [](double v, bool above) { // the next 1, 2 or 5 times a power of ten
    double const power = std::pow(10.0, std::floor(std::log10(v)));
    double const steps[] = {1, 2, 5, 10};
    double best = above ? 10 : 1;
    for (double m : steps)
      if (above ? m * power >= v && m < best : m * power <= v && m > best) best = m;
    return std::log10(best * power);
  };
  double const log_low = bound(low, false), log_high = bound(high, true);
  auto const px = [&](double i) { return left + (width - left - right) * i / static_cast<double>(count - 1); };
  auto const py = [&](double v) {
    return top + (height - top - bottom) * (log_high - std::log10(v)) / (log_high - log_low);
  };
  std::ostringstream s;
  s.precision(5);
  s << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << ' ' << height << "\" width=\"" << width
    << "\" height=\"" << height
    << "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\">\n<rect width=\"100%\" "
       "height=\"100%\" fill=\"white\"/>\n"
    << "<text x=\"" << left << "\" y=\"30\" font-size=\"17\" font-weight=\"bold\">" << title << "</text>\n";
  for (int e = static_cast<int>(std::floor(log_low)); e <= static_cast<int>(std::ceil(log_high)); ++e)
    for (int m = 1; m < 10; ++m) {
      double const v = m * std::pow(10.0, e);
      if (std::log10(v) > log_high + 1e-9 || std::log10(v) < log_low - 1e-9) continue;
      s << "<line x1=\"" << left << "\" x2=\"" << width - right << "\" y1=\"" << py(v) << "\" y2=\"" << py(v)
        << "\" stroke=\"" << (m == 1 ? "#c8c8c8" : "#eeeeee") << "\"/>\n";
      if (m == 1 || m == 2 || m == 5)
        s << "<text x=\"" << left - 8 << "\" y=\"" << py(v) + 4 << "\" text-anchor=\"end\">" << v << "</text>\n";
    }
  double step = std::pow(10.0, std::floor(std::log10(static_cast<double>(count) / 4)));
  while (static_cast<double>(count) / step > 8) step *= 2;
  for (double i = 0; i < static_cast<double>(count); i += step)
    s << "<line x1=\"" << px(i) << "\" x2=\"" << px(i) << "\" y1=\"" << height - bottom << "\" y2=\""
      << height - bottom + 5 << "\" stroke=\"#888\"/>\n<text x=\"" << px(i) << "\" y=\"" << height - bottom + 21
      << "\" text-anchor=\"middle\">" << i << "</text>\n";
  s << "<line x1=\"" << left << "\" x2=\"" << width - right << "\" y1=\"" << height - bottom << "\" y2=\""
    << height - bottom << "\" stroke=\"#888\"/>\n"
    << "<text x=\"" << (left + width - right) / 2 << "\" y=\"" << height - 16 << "\" text-anchor=\"middle\">" << x_label
    << "</text>\n"
    << "<text transform=\"translate(20 " << (top + height - bottom) / 2 << ") rotate(-90)\" text-anchor=\"middle\">"
    << y_label << "</text>\n";
  double legend = top + 14;
  for (auto const& c : curves) {
    std::string const style = "fill=\"none\" stroke=\"" + c.color + "\" stroke-width=\"" +
                              (c.dashed ? "1.6\" stroke-dasharray=\"7 5\"" : "2.4\"");
    s << "<polyline " << style << " points=\"";
    for (std::size_t i = 0; i < c.y.size(); ++i) s << px(static_cast<double>(i)) << ',' << py(c.y[i]) << ' ';
    s << "\"/>\n<line " << style << " x1=\"" << width - 268 << "\" x2=\"" << width - 228 << "\" y1=\"" << legend
      << "\" y2=\"" << legend << "\"/>\n<text x=\"" << width - 218 << "\" y=\"" << legend + 4 << "\">" << c.name
      << "</text>\n";
    legend += 22;
  }
  s << "</svg>\n";
  std::ofstream file(path);
  if (!(file << s.str() << std::flush)) throw std::runtime_error(path + ": cannot be written");
}
