-- What each process has counted in each minute of the last day.
CREATE TABLE minute (
  at bigint NOT NULL,
  process text NOT NULL,
  content text NOT NULL,
  PRIMARY KEY (at, process)
);
