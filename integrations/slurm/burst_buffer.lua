-- farline as Slurm's stager of data (burst_buffer/lua): files are there before a job starts, and
-- leave after it. A job says what it needs:
--
--   #BB_LUA stage_in  farline://dtn.example.org#runs/ /scratch/runs/
--   #BB_LUA stage_out /scratch/results/ dtn.example.org:/archive/results/
--
-- Put this file beside slurm.conf, and farline_stage.py beside it or where FARLINE_STAGE says.
-- Everything but the calls of Slurm is in farline_stage.py. See docs/guide/slurm.md.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "/etc/slurm/"
local STAGE = os.getenv("FARLINE_STAGE") or (here .. "farline_stage.py")

local function quoted(text)
    return "'" .. tostring(text):gsub("'", "'\\''") .. "'"
end

-- Runs farline_stage.py; what it prints last is what the user reads.
local function stage(...)
    local words = { quoted(STAGE) }
    for _, word in ipairs({ ... }) do
        words[#words + 1] = quoted(word)
    end
    local pipe = io.popen(table.concat(words, " ") .. " 2>&1; echo \"farline_stage: $?\"")
    if not pipe then
        return slurm.ERROR, STAGE .. " cannot be started"
    end
    local said = pipe:read("*a")
    pipe:close()
    local text, code = said:match("^(.-)\n?farline_stage: (%d+)%s*$")
    if code == "0" then
        return slurm.SUCCESS, text
    end
    return slurm.ERROR, text or said
end

function slurm_bb_job_process(script, uid, gid)
    return stage("check", script)
end

function slurm_bb_pools()
    -- Nobody needs it, but Slurm logs an error where there is none.
    return slurm.SUCCESS, '{"pools":[{"id":"farline","quantity":1000000,"granularity":1}]}'
end

function slurm_bb_setup(job, uid, gid, pool, size, script)
    return slurm.SUCCESS
end

function slurm_bb_data_in(job, script, uid, gid)
    return stage("in", script, job)
end

function slurm_bb_real_size(job)
    return slurm.SUCCESS
end

function slurm_bb_paths(job, script, path_file)
    return stage("paths", script, path_file)
end

function slurm_bb_pre_run(job, script)
    return slurm.SUCCESS
end

function slurm_bb_post_run(job, script)
    return slurm.SUCCESS
end

function slurm_bb_data_out(job, script, uid, gid)
    return stage("out", script, job)
end

function slurm_bb_job_teardown(job, script, hurry)
    return stage("teardown", job)
end

function slurm_bb_get_status(uid, gid, ...)
    return stage("status")
end
