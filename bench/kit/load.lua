-- Load for wrk. Arguments: the API key, a file of requests (METHOD, tab, PATH, tab, BODY on each line),
-- how many answers each thread waits for before it stops (0: wrk's own time limit), the thread count,
-- a file that gets one character from each thread that stopped (wrk itself sleeps on), and how many
-- milliseconds each connection waits before a request (0: none).
-- At the end one line of JSON: what was answered, and the latency in microseconds.

local requests, at, answered, most = {}, 0, 0, 0
local threads = 0

function setup(thread)
    thread:set("number", threads)
    threads = threads + 1
end

function init(args)
    most = tonumber(args[3])
    for line in io.lines(args[2]) do
        local method, path, body = line:match("^(%u+)\t([^\t]*)\t(.*)$")
        local headers = { ["Authorization"] = "Bearer " .. args[1] }
        if body == "" then
            body = nil
        else
            headers["Content-Type"] = "application/json"
        end
        requests[#requests + 1] = wrk.format(method, path, headers, body)
    end
    local pause = tonumber(args[6])
    if pause > 0 then
        delay = function()
            return pause
        end
    end
    at = math.floor(#requests * number / tonumber(args[4]))
    -- wrk hands answers to the script only when there is a function for them, and that costs.
    if most > 0 then
        response = function()
            answered = answered + 1
            if answered >= most then
                wrk.thread:stop()
                local file = io.open(args[5], "a")
                file:write(".")
                file:close()
            end
        end
    end
end

function request()
    at = at % #requests + 1
    return requests[at]
end

function done(summary, latency, _)
    local e = summary.errors
    io.write(string.format(
        '\n{"requests":%d,"microseconds":%d,"bytes":%d,"refused":%d,"broken":%d,"timeout":%d,' ..
        '"p50":%d,"p90":%d,"p99":%d,"p999":%d,"max":%d}\n',
        summary.requests, summary.duration, summary.bytes, e.status, e.connect + e.read + e.write, e.timeout,
        latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9),
        latency.max))
end
