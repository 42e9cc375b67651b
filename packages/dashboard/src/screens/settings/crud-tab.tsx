import type { Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import { type UseQueryResult, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Row } from '../../parts/blocks.tsx';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import type { Look } from '../../parts/look.ts';
import { RoleButton } from '../../parts/role-button.tsx';
import { Cell, type Column, Table } from '../../parts/table.tsx';
import { Section } from './section.tsx';

/** A column with the contents of its cells. */
interface CrudColumn<T> extends Pick<Column, 'width'> {
  readonly name: string;
  readonly cell: (item: T) => ReactNode;
  /** How the cells look. Default: muted. */
  readonly look?: Look | ((item: T) => Look);
}

/** The question before an item is deleted. */
interface Removal {
  readonly title: string;
  readonly text: ReactNode;
  /** The label of the button that deletes. */
  readonly action: string;
  readonly run: () => Promise<unknown>;
}

/** A tab of the settings that lists things which a person creates, changes and deletes. */
interface CrudTabProps<T> {
  readonly title: string;
  /** A sentence about the things. */
  readonly about: string;
  readonly query: Pick<UseQueryResult<readonly T[]>, 'data' | 'error' | 'refetch'>;
  /** The key of the query, which is read again after a deletion. */
  readonly queryKey: readonly string[];
  /** Text, command and title in place of an empty list. */
  readonly empty: { readonly title: string; readonly text: string; readonly command?: string };
  readonly keyOf: (item: T) => string;
  /** The words for an item in the labels of its buttons. */
  readonly nameOf: (item: T) => string;
  readonly columns: readonly CrudColumn<T>[];
  /** The width of the column with the buttons, in pixels. */
  readonly actionsWidth: number;
  /** The label of the button that creates an item. */
  readonly newLabel: string;
  /** The role that creates an item. Default: viewer, because the service decides by the scope of the item. */
  readonly newNeeds?: Role;
  /** The role that changes and deletes an item. Default: member. */
  readonly needs?: (item: T) => Role;
  /** The word of the button that changes an item. Absent: items cannot be changed. */
  readonly change?: string;
  /** Shows the dialog that creates an item, or changes `item`. */
  readonly editor: (item: T | undefined, close: () => void) => ReactNode;
  /** The word of the button that deletes an item. Default: Delete. */
  readonly removeWord?: (item: T) => string;
  readonly removal: (item: T) => Removal;
  /** More contents of the cell with the buttons. */
  readonly more?: (item: T) => ReactNode;
  /** Shown below a list that is not empty. `leave` asks whether an item may be deleted. */
  readonly below?: (leave: (item: T) => void) => ReactNode;
}

/** Lists things with their buttons, and opens the dialogs that create, change and delete them. */
export function CrudTab<T>(tab: CrudTabProps<T>) {
  const queries = useQueryClient();
  const [edited, setEdited] = useState<{ readonly item: T | undefined } | undefined>();
  const [leaving, setLeaving] = useState<T | undefined>();
  const removal = leaving === undefined ? undefined : tab.removal(leaving);
  const button = (
    <RoleButton needs={tab.newNeeds ?? 'viewer'} kind="primary" icon="plus" run={() => setEdited({ item: undefined })}>
      {tab.newLabel}
    </RoleButton>
  );
  return (
    <>
      <Section title={tab.title} about={tab.about} action={tab.query.data?.length === 0 ? undefined : button} />
      <Loaded query={tab.query}>
        {(list) =>
          list.length === 0 ? (
            <Empty {...tab.empty} action={button}>
              {tab.empty.text}
            </Empty>
          ) : (
            <>
              <Table
                aria-label={tab.title}
                columns={[
                  ...tab.columns.map(({ name, width }) => ({ name, ...(width === undefined ? {} : { width }) })),
                  { name: 'Actions', width: tab.actionsWidth, spoken: true },
                ]}
              >
                {list.map((item) => (
                  <tr key={tab.keyOf(item)}>
                    {tab.columns.map(({ name, cell, look = { tone: 'muted' } }) => (
                      <Cell key={name} {...(typeof look === 'function' ? look(item) : look)}>
                        {cell(item)}
                      </Cell>
                    ))}
                    <td>
                      <ItemButtons
                        tab={tab}
                        item={item}
                        change={() => setEdited({ item })}
                        leave={() => setLeaving(() => item)}
                      />
                    </td>
                  </tr>
                ))}
              </Table>
              {tab.below?.((item) => setLeaving(() => item))}
            </>
          )
        }
      </Loaded>
      {edited && tab.editor(edited.item, () => setEdited(undefined))}
      {removal && (
        <ConfirmDialog
          title={removal.title}
          action={removal.action}
          run={async () => {
            await removal.run();
            await queries.invalidateQueries({ queryKey: tab.queryKey });
          }}
          close={() => setLeaving(undefined)}
        >
          {removal.text}
        </ConfirmDialog>
      )}
    </>
  );
}

function ItemButtons<T>({
  tab: { needs = () => 'member', change: changeWord, removeWord = () => 'Delete', nameOf, more },
  item,
  change,
  leave,
}: {
  tab: CrudTabProps<T>;
  item: T;
  change: () => void;
  leave: () => void;
}) {
  const name = visibleText(nameOf(item));
  return (
    <Row as="span">
      {more?.(item)}
      {changeWord !== undefined && (
        <RoleButton needs={needs(item)} small label={`${changeWord} ${name}`} run={change}>
          {`${changeWord}…`}
        </RoleButton>
      )}
      <RoleButton needs={needs(item)} kind="danger" small label={`${removeWord(item)} ${name}`} run={leave}>
        {`${removeWord(item)}…`}
      </RoleButton>
    </Row>
  );
}
