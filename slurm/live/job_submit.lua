-- Puts each new job behind the gate of aucsched: it asks for one licence more.
-- slurm.conf: JobSubmitPlugins=lua and Licenses=auction:1000000. Edit the two tables to your site.
local licence = "auction"
-- Partitions whose jobs go past the gate, as ["debug"] = true.
local past_partitions = {}
-- Users whose jobs go past the gate, by number, as [0] = true.
local past_users = {}

-- Whether a list of licences names the gate's: name, name:count, name@server.
local function has_gate(licenses)
    for item in string.gmatch(licenses or "", "[^,;|]+") do
        if string.match(item, "^%s*([^:@]+)") == licence then
            return true
        end
    end
    return false
end

local function goes_past(job, uid)
    if past_users[uid] then
        return true
    end
    for name in string.gmatch(job.partition or job.default_partition or "", "[^,]+") do
        if past_partitions[name] then
            return true
        end
    end
    return false
end

function slurm_job_submit(job_desc, part_list, submit_uid)
    if has_gate(job_desc.licenses) or goes_past(job_desc, submit_uid) then
        return slurm.SUCCESS
    end
    local asked = job_desc.licenses
    if asked == nil or asked == "" then
        job_desc.licenses = licence .. ":1"
    elseif not string.find(asked, "|", 1, true) then
        job_desc.licenses = asked .. "," .. licence .. ":1"
    end
    -- One licence or another (a|b) cannot be asked for beside a third: such a job is Slurm's own.
    return slurm.SUCCESS
end

-- Users may not slip past the gate; operators take the licence off to place a job.
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    if modify_uid == 0 or modify_uid ~= job_rec.user_id or job_desc.licenses == nil then
        return slurm.SUCCESS
    end
    if has_gate(job_rec.licenses) and not has_gate(job_desc.licenses) then
        slurm.log_user("the licence " .. licence .. " is not yours to take off")
        return slurm.ERROR
    end
    return slurm.SUCCESS
end

return slurm.SUCCESS
