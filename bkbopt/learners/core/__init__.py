"""What all learners share: rows and labels from users, the learner's units, several classes, state files."""
