# SPDX-License-Identifier: Apache-2.0
# A Slurm of this machine's own with two nodes, n1 and n2, which are two slurmd of this machine; from Debian's packages in a folder: nothing is
# installed, and nothing of it runs on. Sourced.
#
#   slurm_up PACKAGES DIR    0: sbatch and the like are on PATH and find it; 77: its packages cannot be had, the last line says why; else it does
#                            not start, and what it said is printed
#   slurm_down

slurm_packages="libhwloc15 liblua5.1-0 libmunge2 munge slurm-wlm-basic-plugins slurm-client slurmctld slurmd"

# The packages, unpacked below $1.
slurm_get() {
    local into=$1
    [ -e "$into/.whole" ] && return 0
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "Slurm comes from Debian's packages, and there is no apt-get here"; return 77; }
    rm -rf "$into" && mkdir -p "$into/deb"
    # shellcheck disable=SC2086 # one word a package
    (cd "$into/deb" && apt-get download $slurm_packages) >"$into/log" 2>&1 || { echo "Debian's packages of Slurm cannot be had: $(tail -n 1 "$into/log")"; return 77; }
    for deb in "$into"/deb/*.deb; do dpkg -x "$deb" "$into" || return 1; done
    rm -r "$into/deb"
    touch "$into/.whole"
}

slurm_failed() { # WHAT LOG
    echo "FAIL  $1; the last lines of $(basename "$2"):"
    tail -n 20 "$2" | sed 's/^/      /'
    return 1
}
slurm_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

slurm_up() {
    local into=$1 lib
    slurm_dir=$2
    slurm_get "$into" || return $?
    into=$(cd "$into" && pwd)
    lib=$(dirname "$(find "$into/usr/lib" -name libmunge.so.2 | head -n 1)")
    export LD_LIBRARY_PATH=$lib:$lib/slurm-wlm PATH=$into/usr/bin:$PATH SLURM_CONF=$slurm_dir/slurm.conf
    local host user=root
    host=$(hostname -s)
    [ "$(id -u)" = 0 ] || user=$(id -un)
    mkdir -p "$slurm_dir"/{state,munge,spool-n1,spool-n2}
    chmod 755 "$slurm_dir"
    head -c 1024 /dev/urandom >"$slurm_dir/munge/key"
    chmod 400 "$slurm_dir/munge/key"
    # cred_expire: a task that is queued again waits until what it was started with has expired, two minutes as a rule.
    cat >"$SLURM_CONF" <<CONF
ClusterName=normbench
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(slurm_port)
AuthType=auth/munge
AuthInfo=socket=$slurm_dir/munge/socket,cred_expire=2
SlurmUser=$user
SlurmdUser=$user
PluginDir=$lib/slurm-wlm
StateSaveLocation=$slurm_dir/state
SlurmdSpoolDir=$slurm_dir/spool-%n
SlurmctldPidFile=$slurm_dir/slurmctld.pid
SlurmdPidFile=$slurm_dir/slurmd-%n.pid
SlurmctldLogFile=$slurm_dir/slurmctld.log
SlurmdLogFile=$slurm_dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2,batch_sched_delay=0
KillWait=5
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(slurm_port) CPUs=$(nproc) RealMemory=1000
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(slurm_port) CPUs=$(nproc) RealMemory=1000
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
    "$into/usr/sbin/munged" --force --key-file="$slurm_dir/munge/key" --socket="$slurm_dir/munge/socket" --pid-file="$slurm_dir/munged.pid" \
        --log-file="$slurm_dir/munged.log" --seed-file="$slurm_dir/munge/seed" >"$slurm_dir/start.log" 2>&1 || { slurm_failed "munged does not start" "$slurm_dir/start.log"; return; }
    "$into/usr/sbin/slurmctld-wlm" -f "$SLURM_CONF" >>"$slurm_dir/start.log" 2>&1 || { slurm_failed "slurmctld does not start" "$slurm_dir/start.log"; return; }
    for _ in $(seq 60); do
        scontrol ping 2>/dev/null | grep -q 'is UP' && break
        sleep 1
    done
    local node
    for node in n1 n2; do
        "$into/usr/sbin/slurmd-wlm" -f "$SLURM_CONF" -d "$into/usr/sbin/slurmstepd-wlm" -N $node >>"$slurm_dir/start.log" 2>&1 ||
            { slurm_failed "slurmd does not start" "$slurm_dir/start.log"; return; }
    done
    for _ in $(seq 60); do
        [ "$(sinfo -h -N -o %T 2>/dev/null | sort | uniq -c | tr -d ' ')" = 2idle ] && return 0
        sleep 1
    done
    slurm_failed "the nodes are not idle within a minute: $(sinfo -h -N -o '%N %T %E' 2>&1)" "$slurm_dir/slurmctld.log"
}

# Jobs first, so that none outlives its daemons.
slurm_down() {
    local pid name
    [ -n "${slurm_dir:-}" ] || return 0
    if [ -e "$slurm_dir/slurmctld.pid" ]; then
        scancel --user="$(id -un)" 2>/dev/null
        for _ in $(seq 15); do
            [ -z "$(squeue -h 2>/dev/null)" ] && break
            sleep 1
        done
    fi
    for name in slurmd-n1 slurmd-n2 slurmctld munged; do
        pid=$(cat "$slurm_dir/$name.pid" 2>/dev/null) || continue
        kill "$pid" 2>/dev/null
        for _ in $(seq 50); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -9 "$pid" 2>/dev/null
    done
    return 0
}
