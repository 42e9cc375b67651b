import type { CreateMcpServerRequest, McpServer, UpdateMcpServerRequest } from '@runyard/contract/team/mcp-servers';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { Empty } from '../../parts/empty.tsx';
import { tellWaiting } from '../../parts/executor-field.tsx';
import { SelectField, TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { type Pair, Pairs, pairsOf } from '../../parts/pairs.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Rows } from '../../parts/rows.tsx';
import { Ago } from '../../parts/time.tsx';
import { Section } from './section.tsx';

/** Shows the stored MCP servers of the team. The configuration of a run names such a server by its id. */
export function McpServers() {
  const client = useClient();
  const { team } = useSession();
  const servers = useQuery({
    queryKey: ['mcp-servers', team.uid],
    queryFn: async () => (await client.listMcpServers()).mcp_servers,
  });
  const [changing, setChanging] = useState<McpServer | 'new' | undefined>();
  const [leaving, setLeaving] = useState<McpServer | undefined>();
  const button = (
    <RoleButton needs="member" className="btn pri" run={() => setChanging('new')}>
      <Icon name="plus" small />
      Store server
    </RoleButton>
  );
  return (
    <>
      <Section
        title="MCP servers"
        about="Tools for agents. Values of headers and variables are sealed; headers never reach a sandbox."
        action={servers.data?.length === 0 ? undefined : button}
      />
      <Loaded query={servers}>
        {(list) =>
          list.length === 0 ? (
            <Empty
              title="No MCP server yet"
              command="bin/runyard mcp create docs --url https://mcp.example.com/mcp"
              action={button}
            >
              {'A stored server gives runs its tools: config.mcp_servers names it by its id.'}
            </Empty>
          ) : (
            <div className="card">
              <table className="tbl in-card" aria-label="MCP servers">
                <thead>
                  <tr>
                    <th className="w160">Name</th>
                    <th>Reached at</th>
                    <th className="w200">Sealed values</th>
                    <th className="w108">Changed</th>
                    <th className="w180">
                      <span className="sr">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((server) => (
                    <tr key={server.id}>
                      <td className="md">{visibleText(server.name)}</td>
                      <td className="mono" title={placeOf(server)}>
                        {placeOf(server)}
                      </td>
                      <td className="mut">
                        {visibleText([...(server.header_names ?? []), ...(server.env_names ?? [])].join(', ')) ||
                          'none'}
                      </td>
                      <td className="mut">
                        <Ago time={server.updated_at} />
                      </td>
                      <td>
                        <span className="row">
                          <CopyButton text={server.id} what={`Copy the id of ${server.name}`} />
                          <RoleButton
                            needs="member"
                            className="btn sm"
                            label={`Change ${server.name}`}
                            run={() => setChanging(server)}
                          >
                            Change…
                          </RoleButton>
                          <RoleButton
                            needs="member"
                            className="btn sm dan"
                            label={`Delete ${server.name}`}
                            run={() => setLeaving(server)}
                          >
                            Delete…
                          </RoleButton>
                        </span>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
      {changing && (
        <ServerDialog earlier={changing === 'new' ? undefined : changing} close={() => setChanging(undefined)} />
      )}
      {leaving && <DeleteDialog server={leaving} close={() => setLeaving(undefined)} />}
    </>
  );
}

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
          className="mono"
          placeholder="https://mcp.example.com/mcp"
          defaultValue={earlier?.url}
          hint="Streamable HTTP"
          required
        />
      ) : (
        <>
          <TextField label="Command" path="command" className="mono" defaultValue={earlier?.command} required />
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
        <p className="hint">
          {`Stored: ${visibleText(names.join(', '))}. If you leave them empty, they stay unchanged; pairs that you enter replace all of them. Another address needs them again.`}
        </p>
      )}
    </FormDialog>
  );
}

function DeleteDialog({ server, close }: { server: McpServer; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  return (
    <ConfirmDialog
      title={`Delete the MCP server ${visibleText(server.name)}?`}
      action="Delete the server"
      run={async () => {
        await client.deleteMcpServer({ params: { serverId: server.id } });
        await queries.invalidateQueries({ queryKey: ['mcp-servers', team.uid] });
      }}
      close={close}
    >
      Runs that begin later and name it fail with resource_not_found.
    </ConfirmDialog>
  );
}
