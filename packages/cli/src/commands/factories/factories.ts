/** Factories. */

import { readPrompt } from '../../input/input-file.ts';
import { factoryHelp } from '../../input/options.ts';
import { type Row, request } from '../../route-commands/row.ts';
import { idOf } from '../../service/named.ts';
import { declareApply } from './apply.ts';
import { declareSource } from './source.ts';
import { declareValidate } from './validate.ts';
import { versionRows } from './versions.ts';

const factory = { usage: '<uid>', help: factoryHelp, find: idOf.factory };

/** The commands of `factory`. */
export const factories: readonly Row[] = [
  request('listFactories', 'list', 'list the factories of the team', {
    isDefault: true,
    flags: { '--search <text>': { member: 'search', help: 'only factories with this text in name or alias' } },
    list: {
      of: 'factories',
      allPages: true,
      columns: [
        { header: 'FACTORY', text: ({ uid }) => uid },
        { header: 'ALIAS', text: ({ alias }) => alias ?? '' },
        { header: 'NAME', flexible: true, text: ({ name }) => name },
      ],
      none: 'no factories; create one with: bin/runyard factory create NAME',
    },
  }),
  request('createFactory', 'create', 'create a factory and print its UID', {
    arguments: [{ usage: '<name>', help: 'name of the factory', member: 'name' }],
    flags: { '--alias <alias>': 'alias', '--description <text>': 'description' },
    orJson: true,
    lines: ({ uid }) => uid,
  }),
  request('getFactory', 'show', 'show a factory as JSON', { arguments: [factory] }),
  request('deleteFactory', 'delete', 'delete a factory with its webhooks', {
    arguments: [factory],
    lines: (_, { factoryUid }) => `${factoryUid} is deleted`,
  }),
  declareValidate,
  declareApply,
  declareSource,
  ...versionRows,
  request('dispatchFactory', 'run', 'give work to the foreman of a factory, and print the id of the run', {
    arguments: [
      factory,
      {
        usage: '<prompt>',
        help: 'the work: a file, - for standard input, or the text itself',
        member: 'prompt',
        read: (text) => readPrompt(text),
      },
    ],
    flags: { '--title <text>': 'title', '--ticket-ref <ref>': 'ticket_ref', '--ticket-url <url>': 'ticket_url' },
    orJson: true,
    lines: ({ run_id }) => run_id,
  }),
];
