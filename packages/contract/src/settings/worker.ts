import { workerName } from '../workers/worker-name.ts';
import { egress } from './egress.ts';
import { absolutePath, headerSecret, matching, oneOf, privateNetworks, type Setting, whole } from './setting.ts';

/** Settings of the worker and its sandboxes. */
export const workerSettings = {
  RUNYARD_SANDBOX: {
    read: oneOf('auto', 'bubblewrap', 'gvisor', 'docker', 'kubernetes', 'none'),
    default: 'auto',
    description:
      'Sandbox backend. `auto`: bubblewrap; without it, the worker does not start. `gvisor`: bubblewrap with a separate kernel; runsc must be installed. `docker`: containers of an engine on this machine, with the image of the environment. `kubernetes`: pods of a cluster, with the image of the environment. `none`: agents run without protection, and every run reports this.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_API_KEY: {
    read: headerSecret,
    description: 'Key with which the CLI and the worker authenticate. Default: the bootstrap key.',
    usedBy: ['worker', 'cli'],
    secret: true,
  },
  RUNYARD_WORKER_NAME: {
    read: matching(workerName, 'must be 1 to 63 characters of [A-Za-z0-9._-]'),
    description:
      'Name of the worker. A worker whose name starts with `runyard` serves all runs and needs the key of the operator, which is the bootstrap key. A worker with another name serves only runs that name this worker and belong to the team of its key. Default: `runyard-{hostname}`.',
    usedBy: ['worker'],
  },
  RUNYARD_WORKER_SLOTS: {
    read: whole(1, 1000),
    description: 'Executions that run at once on this worker. Default: twice the number of cores.',
    usedBy: ['worker'],
  },
  RUNYARD_HARNESS_DIR: {
    read: absolutePath,
    description:
      'Folder with the programs of harnesses, as `npm install --global --prefix` makes it. Sandboxes see it read-only. Default: only programs in /usr are found.',
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_SANDBOX_MEMORY_MB: {
    read: whole(128, 1048576),
    default: '2048',
    description:
      'Memory limit of one sandbox. If cgroups are writable, it applies to the whole sandbox; otherwise it applies to each process.',
    usedBy: ['worker'],
  },
  RUNYARD_SANDBOX_PROCESSES: {
    read: whole(16, 100000),
    default: '512',
    description: 'Processes and threads of one sandbox.',
    usedBy: ['worker'],
  },
  RUNYARD_SANDBOX_TMP_MB: {
    read: whole(1, 1048576),
    default: '512',
    description: 'Size of /tmp of one sandbox, in memory.',
    usedBy: ['worker'],
  },
  RUNYARD_SANDBOX_DISK_MB: {
    read: whole(16, 10485760),
    default: '4096',
    description: 'Largest size of workspace and home of one sandbox. A larger sandbox is ended.',
    usedBy: ['worker'],
  },
  RUNYARD_SANDBOX_OPEN_FILES: {
    read: whole(16384, 100_000_000),
    default: '393216',
    description:
      'Files that all processes of one sandbox may have open together. Each process may open this number divided by `RUNYARD_SANDBOX_PROCESSES`, at most 65,536.',
    usedBy: ['worker'],
  },
  RUNYARD_SANDBOX_CPUS: {
    read: whole(0, 1024),
    default: '0',
    description:
      'Processors that one sandbox may use; with bubblewrap and gvisor only if cgroups are writable. 0: all processors of the machine.',
    usedBy: ['worker'],
  },
  RUNYARD_WARM_SANDBOXES: {
    read: whole(0, 64),
    default: '1',
    description:
      'Number of sandboxes in which an agent is started ahead of time and waits for its run, so that the run starts at once. Each such sandbox takes memory while it waits. Runs with hosts, limits or variables of their own start without them. Only with bubblewrap. 0: every agent is started when its run is assigned.',
    usedBy: ['worker'],
  },
  RUNYARD_ADOPT_SECONDS: {
    read: whole(0, 3600),
    default: '120',
    description:
      "Time for which sandboxes continue without their worker, so that the worker's next process on the same data folder can adopt them. After it, they end. 0: they end with their worker, and SIGTERM lets the worker finish its runs; choose 0 if the worker runs in its own container.",
    usedBy: ['worker', 'cli'],
  },
  RUNYARD_EGRESS: {
    read: egress,
    default: 'any',
    description:
      'Hosts that sandboxes may reach at most. `any`: every public host that the environment of the run allows. `none`: no host. A list, comma-separated (`registry.npmjs.org,*.example.com:8443`): only hosts that are both in this list and in the environment. If the environment has no list, a sandbox reaches no host.',
    usedBy: ['worker'],
  },
  RUNYARD_EGRESS_PRIVATE_NETWORKS: {
    read: privateNetworks,
    default: '',
    description:
      'Private networks, comma-separated (`10.20.0.0/16`), that sandboxes may reach if their environment allows the host. No team can allow them.',
    usedBy: ['worker'],
  },
  RUNYARD_WORKER_CACHE_MB: {
    read: whole(0, 10485760),
    default: '8192',
    description:
      'Disk space for what runs leave to later runs: copies of repositories and prepared workspaces. The objects that were not used for the longest time are removed first. 0: nothing is kept.',
    usedBy: ['worker'],
  },
} as const satisfies Record<string, Setting<unknown>>;
