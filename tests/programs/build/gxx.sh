#!/bin/bash
# needs: g++
# run: timeout=180
cat > h.cc <<'C'
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
struct Guard { const char *n; ~Guard() { std::cout << "~" << n << "\n"; } };
static void thrower(int n) { Guard g{"inner"}; if (n == 0) throw std::runtime_error("deep"); thrower(n - 1); }
int main() {
    std::vector<int> v(1000);
    for (int i = 0; i < 1000; i++) v[i] = (i * 7919) % 1000;
    std::sort(v.begin(), v.end());
    std::cout << v[0] << " " << v[999] << "\n";
    try { thrower(3); } catch (const std::exception &e) { std::cout << e.what() << "\n"; }
    auto f = std::async(std::launch::async, [] { return 42; });
    std::cout << f.get() << "\n";
    std::atomic<int> n{0};
    std::vector<std::thread> t;
    for (int i = 0; i < 4; i++) t.emplace_back([&] { for (int j = 0; j < 10000; j++) n++; });
    for (auto &x : t) x.join();
    std::cout << n << "\n";
    try { std::async(std::launch::async, []() -> int { throw std::logic_error("in a thread"); }).get(); } catch (std::logic_error &e) { std::cout << e.what() << "\n"; }
    std::ofstream("file") << "line 1\nline 2\n";
    std::string l;
    for (std::ifstream in("file"); std::getline(in, l);) std::cout << l << "\n";
    std::filesystem::create_directories("x/y");
    std::cout << std::filesystem::exists("x/y") << std::filesystem::file_size("file") << "\n";
    std::cout << std::regex_replace("a1b22", std::regex("[0-9]+"), "#") << "\n";
    std::map<std::string, int> m{{"b", 2}, {"a", 1}};
    for (auto &[k, x] : m) std::cout << k << x;
    std::cout << std::endl;
    throw 5;
}
C
g++ -std=c++17 -O1 -o h h.cc -pthread && { ./h; } 2> err; echo $?; head -n 1 err
