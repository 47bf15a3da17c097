// The command line that this peer and its Rust twin share.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

struct Options {
    std::string role; // srv, cli, rdv
    bool is_message = false;
    int64_t bytes = 0; // each connection; 0: as many as --seconds allow
    int64_t block = 65536;
    int packet = 1472; // UDP payload: UDT_MSS less 28
    uint64_t seed = 1;
    int connections = 1;
    std::string host = "127.0.0.1";
    int port = 0;
    int local_port = 0;
    int send_buffer = 0; // bytes; 0: the library's own, here and below
    int receive_buffer = 0;
    int udp_send_buffer = 0;
    int udp_receive_buffer = 0;
    int flow_window = 0; // packets
    bool is_constant = false;
    bool receive_back = false;
    double seconds = 60.0; // to send for if bytes is 0, else the time in which all must be over
    double omit_s = 0.0;   // left out of the steady figures
    double linger_s = 180.0;
    int ttl_ms = -1;
    bool in_order = false;
    bool list = false;

    bool is_timed() const { return bytes == 0; }
};

inline bool set(Options& o, const std::string& name, const char* text)
{
    const std::string value = text;
    if (name == "--mode") o.is_message = value == "message";
    else if (name == "--bytes") o.bytes = atoll(text);
    else if (name == "--block") o.block = atoll(text);
    else if (name == "--packet") o.packet = atoi(text);
    else if (name == "--seed") o.seed = strtoull(text, nullptr, 10);
    else if (name == "--connections") o.connections = atoi(text);
    else if (name == "--host") o.host = value;
    else if (name == "--port") o.port = atoi(text);
    else if (name == "--local-port") o.local_port = atoi(text);
    else if (name == "--send-buffer") o.send_buffer = atoi(text);
    else if (name == "--receive-buffer") o.receive_buffer = atoi(text);
    else if (name == "--udp-send-buffer") o.udp_send_buffer = atoi(text);
    else if (name == "--udp-receive-buffer") o.udp_receive_buffer = atoi(text);
    else if (name == "--flow-window") o.flow_window = atoi(text);
    else if (name == "--pattern") o.is_constant = value == "constant";
    else if (name == "--seconds") o.seconds = atof(text);
    else if (name == "--omit") o.omit_s = atof(text);
    else if (name == "--linger") o.linger_s = atof(text);
    else if (name == "--ttl-ms") o.ttl_ms = atoi(text);
    else return false;
    return true;
}

inline bool set_flag(Options& o, const std::string& name)
{
    if (name == "--receive-back") o.receive_back = true;
    else if (name == "--in-order") o.in_order = true;
    else if (name == "--list") o.list = true;
    else return false;
    return true;
}

// Reads the command line; ends the process with 2 if it cannot be understood.
inline Options parse(int count, char** words)
{
    Options options;
    options.role = count > 1 ? words[1] : "";
    bool is_good = options.role == "srv" || options.role == "cli" || options.role == "rdv";
    for (int at = 2; is_good && at < count; ++at) {
        if (set_flag(options, words[at]))
            continue;
        is_good = at + 1 < count && set(options, words[at], words[at + 1]);
        ++at;
    }
    if (!is_good || options.block < 1 || options.connections < 1) {
        fprintf(stderr, "usage: peer srv|cli|rdv [--name value]...; see peer.cpp\n");
        exit(2);
    }
    return options;
}
