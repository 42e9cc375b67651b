import type { CreateMcpServerRequest, McpServer, UpdateMcpServerRequest } from '@runyard/contract/team/mcp-servers';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTeamRead } from '../../api/read.ts';
import { useClient, useSession } from '../../api/session.ts';
import { Hint } from '../../parts/blocks.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { tellWaiting } from '../../parts/executor-field.tsx';
import { SelectField, TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { type Pair, Pairs, pairsOf } from '../../parts/pairs.tsx';
import { Rows } from '../../parts/rows.tsx';
import { Ago } from '../../parts/time.tsx';
import { CrudTab } from './crud-tab.tsx';

/** Shows the stored MCP servers of the team. The configuration of a run names such a server by its id. */
export function McpServers() {
  const client = useClient();
  const { team } = useSession();
  const servers = useTeamRead(['mcp-servers'], async (client) => (await client.listMcpServers()).mcp_servers);
  return (
    <CrudTab
      title="MCP servers"
      about="Tools for agents. Values of headers and variables are sealed; headers never reach a sandbox."
      query={servers}
      queryKey={['mcp-servers', team.uid]}
      empty={{
        title: 'No MCP server yet',
        text: 'A stored server gives runs its tools: config.mcp_servers names it by its id.',
        command: 'bin/runyard mcp create docs --url https://mcp.example.com/mcp',
      }}
      keyOf={({ id }) => id}
      nameOf={({ name }) => name}
      columns={(column) => [
        column('Name', { width: 160, medium: true }, ({ name }) => visibleText(name)),
        column('Reached at', { mono: true }, (server) => <span title={placeOf(server)}>{placeOf(server)}</span>),
        column('Sealed values', { width: 200, tone: 'muted' }, sealedNames),
        column('Changed', { width: 108, tone: 'muted' }, ({ updated_at }) => <Ago time={updated_at} />),
      ]}
      actionsWidth={180}
      newLabel="Store server"
      newNeeds="member"
      change="Change"
      more={({ id, name }) => <CopyButton text={id} what={`Copy the id of ${name}`} />}
      editor={(earlier, close) => <ServerDialog earlier={earlier} close={close} />}
      removal={({ id, name }) => ({
        title: `Delete the MCP server ${visibleText(name)}?`,
        action: 'Delete the server',
        text: 'Later runs that name it fail with resource_not_found.',
        run: () => client.deleteMcpServer({ params: { serverId: id } }),
      })}
    />
  );
}

const sealedNames = ({ header_names: headers = [], env_names: variables = [] }: McpServer): string =>
  visibleText([...headers, ...variables].join(', ')) || 'none';

const placeOf = ({ url, command, args }: McpServer): string =>
  visibleText(url ?? [command ?? '', ...(args ?? [])].join(' '));

function ServerDialog({ earlier, close }: { earlier: McpServer | undefined; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const [kind, setKind] = useState<'url' | 'command'>(earlier?.command === undefined ? 'url' : 'command');
  const [args, setArgs] = useState<readonly string[]>(earlier?.args ?? []);
  const [pairs, setPairs] = useState<readonly Pair[]>([]);
  const isUrl = kind === 'url';
  const names = (isUrl ? earlier?.header_names : earlier?.env_names) ?? [];
  const place = isUrl ? 'headers' : 'env';
  return (
    <FormDialog
      title={earlier === undefined ? 'Store an MCP server' : `Change ${visibleText(earlier.name)}`}
      action={earlier === undefined ? 'Store' : 'Change'}
      close={close}
      send={async (data, headers) => {
        const text = (name: string): string => String(data.get(name)).trim();
        const values = pairsOf(pairs);
        // The service asks for the values again if the place is in the request, so send it only if it differs.
        const reached = isUrl
          ? text('url') === earlier?.url
            ? {}
            : { url: text('url') }
          : text('command') === earlier?.command && args.join('\n') === earlier.args?.join('\n')
            ? {}
            : { command: text('command'), args: [...args] };
        const sealed = Object.keys(values).length === 0 ? {} : { [place]: values };
        const body: CreateMcpServerRequest & UpdateMcpServerRequest = { name: text('name'), ...reached, ...sealed };
        const saved = await (earlier === undefined
          ? client.createMcpServer({ body, headers: { ...headers } })
          : client.updateMcpServer({ params: { serverId: earlier.id }, body }));
        tellWaiting(saved.waiting);
        await queries.invalidateQueries({ queryKey: ['mcp-servers', team.uid] });
      }}
    >
      <TextField label="Name" path="name" maxLength={100} defaultValue={earlier?.name} required />
      {earlier === undefined && (
        <SelectField
          label="Kind"
          path="kind"
          value={kind}
          onChange={({ target }) => {
            setKind(target.value as 'url' | 'command');
            setPairs([]);
          }}
          options={[
            ['url', 'reached over HTTP by the service'],
            ['command', 'a program that starts in the sandbox'],
          ]}
        />
      )}
      {isUrl ? (
        <TextField
          label="URL"
          path="url"
          type="url"
          mono
          placeholder="https://mcp.example.com/mcp"
          defaultValue={earlier?.url}
          hint="Streamable HTTP"
          required
        />
      ) : (
        <>
          <TextField label="Command" path="command" mono defaultValue={earlier?.command} required />
          <Rows legend="Arguments" path="args" values={args} set={setArgs} what="argument" />
        </>
      )}
      <Pairs
        isSecret
        legend={isUrl ? 'Headers' : 'Variables'}
        path={place}
        pairs={pairs}
        set={setPairs}
        what={isUrl ? 'header' : 'variable'}
      />
      {names.length > 0 && (
        <Hint as="p">
          {`Stored: ${visibleText(names.join(', '))}. If you leave them empty, they stay unchanged; pairs that you enter replace all of them. Another address needs them again.`}
        </Hint>
      )}
    </FormDialog>
  );
}
