import type { AgentSortField, AgentVariant } from '@runyard/contract/team/agents';
import { type Command, Option } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { addListWord, asJson } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import type { Column } from '../../terminal/columns.ts';
import { printList } from '../../terminal/list.ts';
import { formatAgo } from '../../terminal/times.ts';

interface AgentOptions {
  readonly repo?: string;
  readonly refresh?: true;
  readonly all?: true;
  readonly sort: AgentSortField;
  readonly json?: true;
}

/** Lists the skills that runs can follow, each with its name for `run --skill`. */
export async function listAgents(context: Context, options: AgentOptions): Promise<void> {
  const found = await connect(context).listAgents({
    query: {
      ...(options.repo === undefined ? {} : { repo: options.repo }),
      refresh: options.refresh === true,
      sort_by: options.sort,
      include_malformed_skills: options.all === true,
    },
  });
  const now = Date.now();
  const columns: Column<AgentVariant>[] = [
    { header: 'SKILL', text: ({ id }) => id },
    {
      header: 'LAST RUN',
      text: ({ last_run_timestamp: last }) => (last === undefined ? 'never' : formatAgo(last, now)),
      raw: ({ last_run_timestamp: last }) => last ?? '',
    },
    { header: 'DESCRIPTION', flexible: true, text: ({ description, error }) => error ?? description },
  ];
  const rows = found.agents.flatMap(({ variants }) => variants);
  const none = options.all
    ? 'no skills: no repository of an environment has a SKILL.md in skills/ or .agents/skills/'
    : 'no usable skills; list the unusable ones with their reasons: bin/runyard agents --all';
  printList(context, { columns, rows, json: found, none }, options);
}

/** Declares the command `agents`. */
export function declareAgents(agents: Command): void {
  agents
    .option('--repo <owner/repo>', 'only in this repository (default: in the repositories of all environments)')
    .option('--refresh', 'read the repositories again')
    .option('--all', 'also skills and repositories that cannot be used, with the reason')
    .addOption(new Option('--sort <order>', 'order').choices(['name', 'last_run']).default('name'))
    .option(...asJson)
    .action((options) => listAgents(processContext(), options));
  addListWord(agents, (options) => listAgents(processContext(), options));
}
