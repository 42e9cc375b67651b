import type { Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import { type UseQueryResult, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Row } from '../../parts/blocks.tsx';
import { type DataColumns, DataTable } from '../../parts/data-table.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { type Question, useQuestion } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Section } from './section.tsx';

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
  /** The columns before that of the buttons. */
  readonly columns: DataColumns<T>;
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
  /** The question before an item is deleted. */
  readonly removal: (item: T) => Question;
  /** More contents of the cell with the buttons. */
  readonly more?: (item: T) => ReactNode;
  /** Shown below a list that is not empty. `leave` asks whether an item may be deleted. */
  readonly below?: (leave: (item: T) => void) => ReactNode;
}

/** Lists things with their buttons, and opens the dialogs that create, change and delete them. */
export function CrudTab<T>(tab: CrudTabProps<T>) {
  const queries = useQueryClient();
  const [edited, setEdited] = useState<{ readonly item: T | undefined } | undefined>();
  const { ask, dialog } = useQuestion();
  const leave = (item: T) => {
    const question = tab.removal(item);
    const run = async () => {
      await question.run();
      await queries.invalidateQueries({ queryKey: tab.queryKey });
    };
    ask({ ...question, run });
  };
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
              <DataTable
                aria-label={tab.title}
                items={list}
                keyOf={tab.keyOf}
                columns={(column) => [
                  ...tab.columns(column),
                  column('Actions', { width: tab.actionsWidth, spoken: true }, (item) => (
                    <ItemButtons tab={tab} item={item} change={() => setEdited({ item })} leave={() => leave(item)} />
                  )),
                ]}
              />
              {tab.below?.(leave)}
            </>
          )
        }
      </Loaded>
      {edited && tab.editor(edited.item, () => setEdited(undefined))}
      {dialog}
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
